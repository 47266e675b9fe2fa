"""Flags of the programs: mistakes are told in one line."""

import logging
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from absl import app, flags
from absl import logging as absl_logging
from ml_collections import config_flags

from rdc_jax.errors import UserError, guard


def run(main: Callable[[], None]) -> None:
    """Parse the flags and run a program; mistakes print one line and exit with 2.

    Adds ``--debug``, which lets tracebacks through.

    Args:
      main: The program, without arguments; it reads its flags itself.
    """
    flags.DEFINE_boolean("debug", False, "Show the traceback of an error.")
    _log_to_stderr()
    app.run(lambda _: guard(main, debug=flags.FLAGS.debug), flags_parser=_parse)


def define_config(default: str, help_text: str) -> flags.FlagHolder:
    """Define ``--config``, a config file with fields that flags can override.

    Args:
      default: Path of the file, with its argument after a colon.
      help_text: For ``--help``.

    Returns:
      The flag; give its value to ``config_values``.
    """
    try:  # Overrides are applied to the default right here, and may be mistaken.
        return config_flags.DEFINE_config_file("config", default, help_text)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        _fail(_explain(error))


def config_values(config: Any) -> dict[str, Any]:
    """Turn the value of a config flag into plain values.

    Args:
      config: What ``config_flags.DEFINE_config_file(...)`` holds after parsing.

    Returns:
      A dict of the config.

    Raises:
      UserError: The config file is missing or failed.
    """
    try:
        return config.to_dict()
    except Exception as error:  # The file's own error, kept until the first use.
        raise UserError(f"--config: {_explain(error)}") from error


def _parse(argv: list[str]) -> list[str]:
    if {"--help", "-help", "-h"} & set(argv):
        argv = [argv[0], "--helpshort"]  # Only this program's own flags.
    try:
        rest = flags.FLAGS(argv)
    except Exception as error:  # A config file may raise anything.
        if "--debug" in argv:
            raise
        _fail(_explain(error))
    if rest[1:]:
        _fail(f"unexpected argument {rest[1]!r}: write flags as --name=value")
    if "--debug" not in argv:  # orbax reports every file, and errors more than once.
        absl_logging.set_verbosity(absl_logging.FATAL)
    return rest


def _explain(error: Exception) -> str:
    """Make one line of an error of the flags libraries.

    >>> _explain(ValueError("no such thing"))
    'no such thing'
    """
    if error.args and isinstance(error.args[0], KeyError):  # An unknown field.
        field, *hint = str(error.args[0].args[0]).splitlines()
        return " ".join([f"the config has no field {field}.", *hint])
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "Traceback" in str(error):  # A config file that raised: its own message.
        return lines[-1].partition(": ")[2] or lines[-1]
    return " ".join(lines)


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("rdc_jax")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
