"""``python -m rdc_jax.reporting WORKDIR``: results as one HTML page."""

import argparse

from rdc_jax.reporting import report
from rdc_jax.runtime.errors import guard


def main() -> None:
    """Read the command line and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m rdc_jax.reporting",
        description="Write the results of a run as one HTML page that needs no "
        "network.",
    )
    parser.add_argument("workdir", help="work directory of a finished run_eval.py")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the page (default: report.html in the work directory)",
    )
    arguments = parser.parse_args()
    print(report.write(arguments.workdir, arguments.out))


if __name__ == "__main__":
    guard(main)
