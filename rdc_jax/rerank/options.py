"""The flags of ``python -m rdc_jax.rerank``."""

import argparse
from collections.abc import Sequence

from rdc_jax.runtime.arguments import Parser

_ABOUT = """\
Rank the rows of a gallery for each query, by k-reciprocal re-ranking: rows that have
the same neighbours are near each other.

--query and --gallery are features, [n, d] in a .npy file or as "features" in a .npz
file, or folders of pictures with one folder a class."""

_MORE = """\
examples:
  python -m rdc_jax.rerank --query q.npy --gallery g.npy --out ranked.npz
  python -m rdc_jax.rerank --query q.npy --gallery g.npy --labels ql.npy gl.npy
  python -m rdc_jax.rerank --query q.npz --gallery g.npz --workdir index_of_g
  python -m rdc_jax.rerank --query photos/new --gallery photos/known

output: with classes (--labels, "labels" in .npz files, or folders), mAP and CMC before
and after on stdout. --out holds "ids" and "distances" [queries, top], nearest first;
of folders, the pictures' names too. Notes and progress go to stderr.

exit code: 0 done; 2 a mistake or an obstacle, in one line on stderr; 130 interrupted"""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; a mistake prints one line and exits with 2."""
    made = Parser(prog="python -m rdc_jax.rerank", description=_ABOUT, epilog=_MORE)
    add = made.add_argument
    add("--query", metavar="PATH", help="what to look for")
    add("--gallery", metavar="PATH", help="where to look")
    pair = ("QUERY.npy", "GALLERY.npy")
    add("--labels", metavar=pair, nargs=2, help="classes of the rows, [n] each")
    add(
        "--cameras",
        metavar=pair,
        nargs=2,
        help="cameras of the rows: pictures of a query's class from its own camera do "
        "not count",
    )
    _add_output(made.add_argument_group("output"))
    _add_method(made.add_argument_group("method"))
    _add_processes(made.add_argument_group("processes"))
    arguments = made.parse(argv)
    # Not by argparse: it would tell of a missing flag before a misspelt one.
    for name in ("query", "gallery"):
        if getattr(arguments, name) is None:
            made.error(f"--{name} is missing: give a file or a folder")
    return arguments


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--out", metavar="FILE.npz", help="write the nearest rows of each query")
    add("--top", type=int, default=100, help="so many of them (default %(default)s)")
    add("--distances", metavar="FILE.npy", help="write all distances, [q, g] float32")
    add(
        "--workdir",
        metavar="DIR",
        help="keep the gallery's ranks there: a run that was stopped goes on, and the "
        "next queries need no new ones",
    )
    add("--quiet", action="store_true", help="only results and errors")
    add("--debug", action="store_true", help="show the traceback of an error")


def _add_method(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--k", type=int, default=20, help="neighbours of a row (default 20)")
    add("--k2", type=int, default=6, help="ranks of query expansion (default 6)")
    add("--lam", type=float, default=0.3, help="weight of the plain distance (.3)")
    add(
        "--distance",
        choices=("squared_max", "euclidean"),
        default="squared_max",
        help="squared over the row's maximum, as published (default), or Euclidean",
    )
    add(
        "--checkpoint",
        metavar="PATH",
        default="packaged",
        help="the network for folders of pictures: a work directory of "
        "run_pretrain.py, a torch file or a .safetensors file; by default the weights "
        "that come with the package",
    )
    add(
        "--image_size",
        type=int,
        metavar="PIXELS",
        help="of that network, where the checkpoint does not say (224 is assumed)",
    )


def _add_processes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--coordinator", metavar="HOST:PORT", help="of several processes, or auto")
    add("--num_processes", type=int, metavar="N")
    add("--process_id", type=int, metavar="I")
