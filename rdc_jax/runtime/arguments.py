"""Command lines without a config file: their mistakes, and their messages."""

import argparse
import contextlib
import difflib
import logging
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """``argparse`` as the programs use it.

    A mistake is one line on stderr and exit code 2, and a misspelt flag gets the name
    that was probably meant. Texts of several lines keep them.
    """

    def __init__(self, **options: Any) -> None:
        texts = f"{options.get('description')}{options.get('epilog')}"
        if "\n" in texts:
            options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Print the mistake and exit with 2."""
        print(f"error: {message}; see --help", file=sys.stderr)
        sys.exit(2)

    def parse(self, argv: Sequence[str] | None = None) -> argparse.Namespace:
        """Parse the command line, ``sys.argv`` by default."""
        known = list(self._flags())
        # First, because a flag that is misspelt is also one that is missing.
        for word in sys.argv[1:] if argv is None else argv:
            name = word.partition("=")[0]
            flag = name.startswith("--") and name != "--"
            if flag and not any(each.startswith(name) for each in known):
                self._unknown(word)
        arguments, unknown = self.parse_known_args(argv)
        if unknown:
            self._unknown(unknown[0])
        return arguments

    def _unknown(self, word: str) -> NoReturn:
        close = difflib.get_close_matches(word.partition("=")[0], self._flags(), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        self.error(f"unrecognized arguments: {word}{hint}")

    def _flags(self) -> Iterator[str]:
        """All flags, those of commands included."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for command in action.choices.values():
                    yield from command._flags()


@contextlib.contextmanager
def messages(
    *, quiet: bool, verbose: bool = False, clock: bool = False
) -> Iterator[None]:
    """Write log messages to stderr: warnings at least, with the time if asked for."""
    logger, handler = logging.getLogger("rdc_jax"), logging.StreamHandler()
    if clock:
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    before = logger.level, logger.propagate
    logger.propagate = False  # some library gives the root a handler of its own
    shown = logging.DEBUG if verbose else logging.INFO
    logger.setLevel(logging.WARNING if quiet else shown)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
