"""The flags of ``python -m rdc_jax.predict``."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from rdc_jax.predict.formats import FORMATS
from rdc_jax.runtime.arguments import Parser

_ABOUT = """\
Name the class of each picture of a folder, from a few labelled examples of each
class.

The folder of --support holds one folder a class, with one or more example
pictures in each; the folders' names are the class names. That of --query holds
the pictures to classify, loose or in folders of any name. Nothing is trained,
and nothing leaves the machine.

RDC+ compares the pictures with each other as well as with the examples, if there
are enough of them to gain from it."""

_MORE = """\
examples:
  python -m rdc_jax.predict --support labelled --query new
  python -m rdc_jax.predict --support labelled --query new --html new.html
  python -m rdc_jax.predict --support labelled --query new --out new.csv
  python -m rdc_jax.predict --support labelled --query new --format json | jq .

output: for each picture its class, the probability of that class, and "unsure"
where it is below --reject_below, and whether it may be of none of the classes.
If all pictures of --query are in folders named
like the classes, the accuracy too. Everything else (notes, unreadable pictures,
progress) goes to stderr. Colours only on a terminal; NO_COLOR=1 turns them off.

start-up: the first run on a machine compiles for some seconds; what is compiled is
kept for the next ones, at most 256 MiB, in the folder of RDC_JAX_CACHE_DIR, or
else where the system keeps caches (~/.cache/rdc_jax).

exit code: 0 every picture was classified; 1 some pictures could not be read,
the others were classified; 2 a mistake or an obstacle, in one line on stderr;
130 interrupted"""


class _List(argparse.Action):
    """Prints the checkpoints there are, whatever other flags are missing."""

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> NoReturn:
        from rdc_jax.models.catalogue import checkpoints

        print(f"CHECKPOINTS  --checkpoint=PATH\n\n{checkpoints()}")
        parser.exit()


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; a mistake prints one line and exits with 2."""
    flags = parser()
    arguments = flags.parse(argv)
    # Not by argparse: it would tell of a missing flag before a misspelt one.
    for name in ("support", "query"):
        if getattr(arguments, name) is None:
            flags.error(f"--{name} is missing: give a folder")
    return arguments


def parser() -> Parser:
    """Make the parser of the command line."""
    made = Parser(prog="python -m rdc_jax.predict", description=_ABOUT, epilog=_MORE)
    add = made.add_argument
    add("--support", metavar="DIR", help="labelled: DIR/<class>/<picture>")
    add("--query", metavar="DIR", help="pictures to classify, or one picture")
    add("--list", action=_List, nargs=0, help="print which checkpoints there are")
    _add_output(made.add_argument_group("output"))
    _add_method(made.add_argument_group("method"))
    return made


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--format", choices=FORMATS, help="default: what --out ends in, else table")
    add("--out", metavar="FILE", help="write there instead of stdout")
    add("--html", metavar="FILE", help="also write a page with thumbnails")
    one = group.add_mutually_exclusive_group()
    one.add_argument(
        "--quiet", action="store_true", help="only answers, errors, unreadable files"
    )
    one.add_argument(
        "--verbose", action="store_true", help="also what is read and computed"
    )
    add("--debug", action="store_true", help="show the traceback of an error")
    add(
        "--nocompile_cache",
        dest="compile_cache",
        action="store_false",
        help="do not keep what is compiled for the next run",
    )


def _add_method(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--checkpoint",
        "--backbone",
        metavar="PATH",
        default="packaged",
        help="a work directory of run_pretrain.py, a torch file (399.tar), a "
        ".safetensors file, a directory of Hugging Face or timm, or FILE.py:NAME "
        "(docs/own_model.md); by default the weights that come with the package",
    )
    add(
        "--image_size",
        type=int,
        metavar="PIXELS",
        help="what the checkpoint was trained at, where it does not say so itself "
        "(torch files; 224 is assumed)",
    )
    add(
        "--views",
        type=int,
        default=1,
        metavar="N",
        help="of each picture: 1; 2: also its mirror image; 4: also uncropped, both "
        "ways. More see more, and take as many times the network's time",
    )
    add(
        "--layers",
        default="features",
        metavar="NAMES",
        help="of the network, with weights: features,block3:0.7 for the packaged one",
    )
    add(
        "--method",
        default="rdc_plus",
        metavar="NAME",
        help="what compares pictures with each other: rdc_plus (default) or rdc, maybe "
        "with parameters: 'rdc(k=6)'",
    )
    add(
        "--reject_below",
        type=float,
        default=0.5,
        metavar="P",
        help="call answers of a smaller probability unsure (default 0.5: likelier "
        "wrong than right)",
    )
    add(
        "--unknown_above",
        type=float,
        default=0.95,
        metavar="S",
        help="say that a picture may be of none of the classes if it is farther from "
        "them than this share of their own pictures (default 0.95; 1: never)",
    )
    add(
        "--temperature",
        type=float,
        metavar="T",
        help="how fast probabilities fall with distance: smaller is surer (default: "
        "fitted to the labelled pictures)",
    )
    add(
        "--transductive",
        choices=("auto", "always", "never"),
        default="auto",
        help="compare pictures with each other. auto: if there are at least 10; "
        "otherwise each gets, by itself, the class whose mean is nearest",
    )
    add(
        "--batch_size",
        type=int,
        metavar="N",
        help="the most pictures that are compared with each other (150, or 4 times "
        "the labelled ones)",
    )
