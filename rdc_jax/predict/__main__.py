"""``python -m rdc_jax.predict``: name the classes of your own pictures."""

import io
import signal
import sys
from collections.abc import Sequence

from rdc_jax.predict.options import parse
from rdc_jax.runtime import errors


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 1 when some pictures could not be read."""
    arguments = parse(argv)

    def run() -> None:
        from rdc_jax.predict import program  # slow: mistakes in flags are told before

        sys.exit(program.run(arguments))

    errors.guard(run, debug=arguments.debug)


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # `... | head` ends the program quietly
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names beyond the terminal's alphabet
        sys.stdout.reconfigure(errors="backslashreplace")
    main()
