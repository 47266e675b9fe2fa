"""``python -m rdc_jax.predict``: name the classes of your own pictures."""

import sys
from collections.abc import Sequence

from rdc_jax.predict.options import parse
from rdc_jax.runtime import errors
from rdc_jax.runtime.text import ready_stdout


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 1 when some pictures could not be read."""
    arguments = parse(argv)

    def run() -> None:
        from rdc_jax.predict import program  # slow: wrong flags are reported before

        sys.exit(program.run(arguments))

    errors.guard(run, debug=arguments.debug)


def run() -> None:
    """Run as a command of the shell."""
    ready_stdout()
    main()


if __name__ == "__main__":
    run()
