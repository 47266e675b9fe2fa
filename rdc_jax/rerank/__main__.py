"""``python -m rdc_jax.rerank``: rank a gallery for each query."""

from collections.abc import Sequence

from rdc_jax.rerank.options import parse
from rdc_jax.runtime import errors
from rdc_jax.runtime.text import ready_stdout


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    arguments = parse(argv)

    def run() -> None:
        from rdc_jax.rerank import program  # slow: mistakes in flags are told before

        program.run(arguments)

    errors.guard(run, debug=arguments.debug)


if __name__ == "__main__":
    ready_stdout()
    main()
