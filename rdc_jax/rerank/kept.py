"""The gallery's ranks on disk: a run that was killed goes on."""

import contextlib
import json
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Num

from rdc_jax.core.params import RDCParams
from rdc_jax.core.rows import compute_dtype
from rdc_jax.rerank.index import depth
from rdc_jax.rerank.nearest import Ranks
from rdc_jax.runtime import checksums, workdir
from rdc_jax.runtime.files import replacing, write_text
from rdc_jax.runtime.processes import broadcast_from_first, is_first

_SECONDS = 5.0  # Between two notes of how far it is.
_ADVICE = "make room there, or take another --workdir"


class Kept(NamedTuple):
    """Ranks, in memory-mapped files as a rule.

    Attributes:
      table: To be filled; ``None``: they are kept in memory alone.
      done: Rows that are there.
      note: Called with the rows that are there, notes them.
    """

    table: Ranks | None
    done: int
    note: Callable[[int], None]


@contextlib.contextmanager
def keep(
    folder: pathlib.Path, gallery: Num[np.ndarray, "g d"], params: RDCParams
) -> Iterator[Kept]:
    """Open the ranks of a gallery that are in a folder, or begin them there.

    The first process writes; others read what is there, and keep theirs in memory.

    Raises:
      UserError: The folder is in use, belongs to another gallery or cannot be written.
    """
    with workdir.claim(folder) if is_first() else contextlib.nullcontext():
        g, ranks = len(gallery), depth(params)
        dtype = compute_dtype(gallery[:0])
        if is_first():
            fingerprint = checksums.of_array(gallery)
            record = {"gallery": fingerprint, "ranks": ranks, "dtype": dtype.name}
            workdir.record_run(folder, record)
        progress, done = folder / "done.json", 0
        with contextlib.suppress(OSError, ValueError, LookupError):
            done = int(json.loads(progress.read_text())["rows"])
        done = broadcast_from_first(done)
        if not done and is_first():
            empty = Ranks.empty(g, ranks, dtype)
            for name, array in empty._asdict().items():
                with replacing(folder / f"{name}.npy", _ADVICE) as file:
                    np.save(file, array)
        broadcast_from_first(0)  # The files are there.
        maps = [
            np.lib.format.open_memmap(
                folder / f"{name}.npy", mode="r+" if is_first() else "c"
            )
            for name in Ranks._fields
        ]
        noted = time.monotonic()

        def note(rows: int) -> None:
            nonlocal noted
            if not is_first() or (rows < g and time.monotonic() < noted + _SECONDS):
                return
            for array in maps:
                array.flush()
            write_text(progress, json.dumps({"rows": rows}), _ADVICE)
            noted = time.monotonic()

        yield Kept(Ranks(*maps), done, note)
