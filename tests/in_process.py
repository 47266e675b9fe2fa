"""The programs as from a command line, but in this process: no waiting for imports."""

import contextlib
import io
import logging
import pathlib
import runpy
import sys
from typing import NamedTuple
from unittest import mock

from absl import app, flags
from absl import logging as absl_logging

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Done(NamedTuple):
    """How a program ended, and what it wrote."""

    code: int
    output: str
    errors: str


def run(script: str, *arguments: str) -> Done:
    """Run a script of the repository; its flags and loggers are gone after it."""
    logger = logging.getLogger("rdc_jax")
    before = logger.handlers[:], logger.level, logger.propagate
    known, verbosity = set(flags.FLAGS), absl_logging.get_verbosity()
    output, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        mock.patch.object(sys, "argv", [script, *arguments]),
        mock.patch.object(app, "run", _run),  # absl's sets up logging, for good.
    ):
        try:
            runpy.run_path(str(ROOT / script), run_name="__main__")
            code = 0
        except SystemExit as left:
            code = left.code or 0
        finally:
            for name in set(flags.FLAGS) - known:
                delattr(flags.FLAGS, name)
            flags.FLAGS.unparse_flags()
            logger.handlers[:], logger.level, logger.propagate = before
            absl_logging.set_verbosity(verbosity)
    return Done(code, output.getvalue(), errors.getvalue())


def _run(main, *, flags_parser):
    sys.exit(main(flags_parser(sys.argv)))
