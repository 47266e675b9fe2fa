"""``python -m rdc_jax.reporting WORKDIR`` and ``… compare WORKDIR WORKDIR``."""

import sys

from rdc_jax.reporting import compare, report
from rdc_jax.runtime.arguments import Parser
from rdc_jax.runtime.errors import guard


def main() -> None:
    """Read the command line; write the page of a run, or compare two."""
    if sys.argv[1:2] == ["compare"]:
        return compare.main(sys.argv[2:])
    parser = Parser(
        prog="python -m rdc_jax.reporting",
        description="Write the results of a run as one HTML page that needs no "
        "network.",
        epilog="python -m rdc_jax.reporting compare A B compares two runs on the same "
        "tasks.",
    )
    parser.add_argument("workdir", help="work directory of a finished run_eval.py")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the page (default: report.html in the work directory)",
    )
    arguments = parser.parse()
    print(report.write(arguments.workdir, arguments.out))


if __name__ == "__main__":
    guard(main)
