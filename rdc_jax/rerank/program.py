"""The command line: from features, or pictures, to a ranked gallery."""

import argparse
import contextlib
import dataclasses
import logging
import pathlib
import time
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float

from rdc_jax.core.params import RDCParams
from rdc_jax.rerank.index import ZHONG, Index, build_index
from rdc_jax.rerank.inputs import Rows, read_rows
from rdc_jax.rerank.kept import Kept, keep
from rdc_jax.rerank.metrics import Scores, nearest_rows, score, summary
from rdc_jax.runtime import text
from rdc_jax.runtime.arguments import messages
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import replacing
from rdc_jax.runtime.processes import is_first, join_processes
from rdc_jax.runtime.progress import Progress, duration

_log = logging.getLogger(__name__)

_ADVICE = "choose another place"


def run(arguments: argparse.Namespace) -> None:
    """Rank the gallery for the queries, and write what was asked for."""
    join_processes(arguments.coordinator, arguments.num_processes, arguments.process_id)
    with (
        messages(quiet=arguments.quiet or not is_first()),
        contextlib.ExitStack() as on,
    ):
        params = _check(arguments)
        query, gallery = read_rows(arguments)
        if arguments.workdir:
            folder = pathlib.Path(arguments.workdir)
            kept = on.enter_context(keep(folder, gallery.features, params))
        else:
            kept = Kept(None, 0, lambda _: None)
        index = _index(gallery, params, kept)
        _answer(index, query, gallery, arguments)


def _check(arguments: argparse.Namespace) -> RDCParams:
    """Tell mistakes before the long work."""
    if not 0 <= arguments.lam <= 1:
        raise UserError(f"--lam={arguments.lam}: use a number from 0 to 1")
    if arguments.top < 1:
        raise UserError(f"--top={arguments.top}: use a number above 0")
    for path in filter(None, (arguments.out, arguments.distances)):
        if not pathlib.Path(path).absolute().parent.is_dir():
            raise UserError(f"cannot write {path}: its folder is not there; make it")
    names = ("k", "k2", "lam", "distance")
    try:
        return dataclasses.replace(ZHONG, **{x: getattr(arguments, x) for x in names})
    except ValueError as error:
        raise UserError(str(error).replace("RDCParams.", "--")) from error


class _Pace(Progress):
    """Shows rows a second and the time left."""

    def __init__(self, total: int, unit: str, done: int = 0) -> None:
        super().__init__(total, done=done, unit=unit, every=10.0, shown=is_first())
        self._first, self._began = done, time.monotonic()

    def reach(self, rows: int) -> None:
        """Note that so many rows are done."""
        self.advance(rows - self.done)
        rate = (rows - self._first) / max(time.monotonic() - self._began, 1e-9)
        self.show(f"{rate:.0f}/s, {duration((self.total - rows) / rate)} left")


def _index(gallery: Rows, params: RDCParams, kept: Kept) -> Index:
    """Rank the gallery, or what is left of it."""
    g = len(gallery.features)
    if kept.done:
        _log.info("%d of %d gallery rows are ranked already", kept.done, g)
    with _Pace(g, "gallery rows", kept.done) as pace:

        def advance(rows: int) -> None:
            pace.reach(rows)
            kept.note(rows)

        return build_index(
            gallery.features, params, table=kept.table, done=kept.done, advance=advance
        )


def _answer(
    index: Index, query: Rows, gallery: Rows, arguments: argparse.Namespace
) -> None:
    """Rank the gallery for the queries; all distances go to disk block by block."""
    q, g = len(query.features), len(gallery.features)
    nearest: list[tuple[np.ndarray, np.ndarray]] = []
    scores: list[tuple[Scores, Scores]] = []
    with (
        _Pace(q, "queries") as pace,
        _all_distances(arguments.distances, (q, g)) as write,
    ):
        for before_bg, after_bg in index.blocks(query.features):
            part = slice(pace.done, pace.done + len(after_bg))
            nearest.append(nearest_rows(after_bg, arguments.top))
            write(after_bg)
            if query.labels and gallery.labels:
                own = query.labels.take(part)
                before = score(before_bg, own, gallery.labels)
                scores.append((before, score(after_bg, own, gallery.labels)))
            pace.reach(part.stop)
    if not is_first():
        return
    if arguments.out:
        ids, distances = (np.concatenate(x) for x in zip(*nearest, strict=True))
        names = {"query_names": query.names, "gallery_names": gallery.names}
        known = {name: array for name, array in names.items() if array is not None}
        with replacing(pathlib.Path(arguments.out), _ADVICE) as file:
            np.savez(file, allow_pickle=False, ids=ids, distances=distances, **known)
        _log.info("nearest rows: %s", arguments.out)
    if scores:
        print(_table(scores))


@contextlib.contextmanager
def _all_distances(
    path: str | None, shape: tuple[int, int]
) -> Iterator[Callable[[Float[np.ndarray, "b g"]], object]]:
    """A function that appends rows to a file, if one was asked for."""
    if path is None or not is_first():
        yield lambda _: None
        return
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with replacing(pathlib.Path(path), _ADVICE) as file:
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda rows: file.write(rows.astype("<f4").tobytes())
    _log.info("distances: %s", path)


def _table(scores: list[tuple[Scores, Scores]]) -> str:
    """Accuracies before and after, of the queries that have an answer."""
    joined = (
        Scores(*(np.concatenate(field) for field in zip(*blocks, strict=True)))
        for blocks in zip(*scores, strict=True)
    )
    before, after = map(summary, joined)
    rows = [["", *before]]
    for title, found in (("before", before), ("after", after)):
        cells = (f"{x:.2f}" if isinstance(x, float) else str(x) for x in found.values())
        rows.append([title, *cells])
    return text.table(rows, right=frozenset(range(1, len(before) + 1)))
