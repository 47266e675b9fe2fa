"""The flags of ``python -m rdc_jax.predict``."""

import argparse
import sys
from typing import NoReturn

from rdc_jax.predict.formats import FORMATS

_ABOUT = """\
Name the class of each picture of a folder, from a few labelled examples of each
class.

The folder of --support holds one folder a class, with one or more example
pictures in each; the folders' names are the class names. That of --query holds
the pictures to classify, loose or in folders of any name. Nothing is trained,
and nothing leaves the machine.

Pictures are classified together by Ranking Distance Calibration (RDC), which
compares them with each other as well as with the examples, as long as there are
enough of them to gain from it."""

_MORE = """\
examples:
  python -m rdc_jax.predict --support labelled --query new
  python -m rdc_jax.predict --support labelled --query new --html new.html
  python -m rdc_jax.predict --support labelled --query new --out new.csv
  python -m rdc_jax.predict --support labelled --query new --format json | jq .

output: for each picture its class, the probability of that class, and whether
it is below --reject_below. Everything else (notes, unreadable pictures,
progress) goes to stderr. Colours only on a terminal; NO_COLOR=1 turns them off.

exit code: 0 every picture was classified; 1 some pictures could not be read,
the others were classified; 2 a mistake or an obstacle, in one line on stderr;
130 interrupted"""


class _List(argparse.Action):
    """Prints the checkpoints there are, whatever other flags are missing."""

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> NoReturn:
        from rdc_jax.models.catalogue import checkpoints

        print(f"CHECKPOINTS  --checkpoint=PATH\n\n{checkpoints()}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}; see --help", file=sys.stderr)
        sys.exit(2)


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    made = _Parser(
        prog="python -m rdc_jax.predict",
        description=_ABOUT,
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--support",
        required=True,
        metavar="DIR",
        help="labelled: DIR/<class>/<picture>",
    )
    made.add_argument(
        "--query",
        required=True,
        metavar="DIR",
        help="pictures to classify, or one picture",
    )
    made.add_argument(
        "--list", action=_List, nargs=0, help="print which checkpoints there are"
    )
    _add_output(made.add_argument_group("output"))
    _add_method(made.add_argument_group("method"))
    return made


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--format", choices=FORMATS, help="by default what --out ends in, else table"
    )
    group.add_argument("--out", metavar="FILE", help="write there instead of stdout")
    group.add_argument(
        "--html", metavar="FILE", help="also write a page with thumbnails"
    )
    loud = group.add_mutually_exclusive_group()
    loud.add_argument(
        "--quiet", action="store_true", help="only answers, errors, unreadable pictures"
    )
    loud.add_argument(
        "--verbose", action="store_true", help="also what is read and computed"
    )
    group.add_argument(
        "--debug", action="store_true", help="show the traceback of an error"
    )


def _add_method(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="a work directory of run_pretrain.py, a torch file (399.tar) or a "
        ".safetensors file; by default the weights that come with the package",
    )
    group.add_argument(
        "--image_size",
        type=_count,
        metavar="PIXELS",
        help="what the checkpoint was trained at, where it does not say so itself "
        "(torch files; 224 is assumed)",
    )
    group.add_argument(
        "--reject_below",
        type=_probability,
        default=0.5,
        metavar="P",
        help="mark answers of a smaller probability as rejected (0.5 if not given: "
        "likelier wrong than right)",
    )
    group.add_argument(
        "--temperature",
        type=_positive,
        metavar="T",
        help="how fast probabilities fall with distance: smaller is surer (by default "
        "fitted to the labelled pictures)",
    )
    group.add_argument(
        "--transduction",
        choices=("auto", "always", "never"),
        default="auto",
        help="compare pictures with each other by RDC: auto does so where there are "
        "at least 10, and twice as many as labelled ones; otherwise each gets, by "
        "itself, the class whose mean is nearest",
    )
    group.add_argument(
        "--batch_size",
        type=_count,
        metavar="N",
        help="pictures that are compared with each other at a time, at most (150, or 4 "
        "times the labelled ones)",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _probability(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
