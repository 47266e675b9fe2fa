"""``python -m rdc_jax.data``: check and list data sets."""

import argparse
import json
import math
import sys
from collections.abc import Sequence

from rdc_jax.data.catalogue import catalogue
from rdc_jax.data.names import canonical_split
from rdc_jax.data.open import find_source
from rdc_jax.data.verify import render, verify
from rdc_jax.runtime import errors
from rdc_jax.runtime.arguments import Parser
from rdc_jax.runtime.plugins import load_plugin
from rdc_jax.runtime.progress import Progress
from rdc_jax.runtime.text import ready_stdout

_VERIFY = """\
Decode every image of a data set and report what is wrong with it: unreadable,
truncated and duplicate images (by their pixels), empty classes and classes too
small for a task, links that leave the folder, and counts that differ from the
complete data set."""

_EXAMPLES = """\
examples:
  python -m rdc_jax.data list --data_dir ~/data        what is known and here
  python -m rdc_jax.data verify cub --data_dir ~/data  one of the paper's
  python -m rdc_jax.data verify ~/photos --shot 1      any image folder
  python -m rdc_jax.data verify novel.json             a file list
  python -m rdc_jax.data verify tfds:eurosat/rgb       a prepared TFDS data set

exit code: 0 no findings, 1 findings, 2 the check could not be made, 130
interrupted"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 1 when there are findings."""
    words = sys.argv[1:] if argv is None else argv
    # The other programs have --list; it is understood here too.
    words = ["list" if word == "--list" else word for word in words]
    arguments = _parser().parse(words)
    for path in filter(None, arguments.plugins.split(",")):
        load_plugin(path)
    if arguments.command == "list":
        print(catalogue(arguments.data_dir))
    else:
        _verify(arguments)


def _verify(arguments: argparse.Namespace) -> None:
    handle = find_source(arguments.source, arguments.data_dir)
    parts = [canonical_split(arguments.split)] if arguments.split else handle.parts
    reports = []
    for part in parts:
        images = handle.open(part)
        with Progress(len(images), unit="images", every=math.inf) as bar:
            report = verify(
                images,
                way=arguments.way,
                shot=arguments.shot,
                query=arguments.query,
                tick=bar.advance,
            )
        reports.append(report)
        if not arguments.json:
            print(render(report, everything=arguments.all), end="\n\n")
    findings = any(report.findings for report in reports)
    if arguments.json:
        shown = [report.as_json() for report in reports]
        content = {"name": handle.name, "ok": not findings, "parts": shown}
        print(json.dumps(content, indent=2))
    sys.exit(1 if findings else 0)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m rdc_jax.data",
        description="List data sets, and check that one is whole before a long run.",
        epilog=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "verify",
        help="check a data set",
        description=_VERIFY,
        epilog=_EXAMPLES,
    )
    check.add_argument(
        "source",
        metavar="NAME|DIR",
        help="a known name or a folder under --data_dir, a path to a folder, a .json "
        "file list, tfds:NAME or synthetic:NAME",
    )
    check.add_argument("--split", help="train, val or test (default: all there is)")
    check.add_argument("--way", type=_count, default=5, help="classes of a task (5)")
    check.add_argument("--shot", type=_count, default=5, help="supports a class (5)")
    check.add_argument("--query", type=_count, default=15, help="queries a class (15)")
    check.add_argument("--json", action="store_true", help="print json instead of text")
    check.add_argument("--all", action="store_true", help="print all there is to tell")
    listing = commands.add_parser("list", help="list known data sets and what is here")
    for command in (check, listing):
        command.add_argument(
            "--data_dir", metavar="DIR", help="where data sets are (default: here)"
        )
        command.add_argument(
            "--plugins",
            metavar="FILE,FILE",
            default="",
            help="Python files that register data sources of your own",
        )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def run() -> None:
    """Run as a command of the shell."""
    ready_stdout()
    errors.guard(main)


if __name__ == "__main__":
    run()
