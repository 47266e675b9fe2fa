"""``python -m rdc_jax.predict``: name the classes of your own pictures."""

import argparse
import io
import signal
import sys
from collections.abc import Sequence

from rdc_jax.predict.options import parser
from rdc_jax.runtime import errors


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 1 when some pictures could not be read."""
    arguments = parser().parse_args(argv)
    errors.guard(lambda: _run(arguments), debug=arguments.debug)


def _run(arguments: argparse.Namespace) -> None:
    from rdc_jax.predict import program  # after the flags: mistakes are told at once

    sys.exit(program.run(arguments))


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # `... | head` ends the program quietly
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names beyond the terminal's alphabet
        sys.stdout.reconfigure(errors="backslashreplace")
    main()
