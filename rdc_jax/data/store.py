"""Large arrays on disk that are either whole and current, or built again.

An array called ``name`` is three files in a folder: ``name.npy``, which any program can
open; ``name.json``, which says what the array was made from and has a checksum of every
block of it; and a lock. Each file is written beside its place and moved there, the
header last, so that a kill at any point leaves nothing that looks whole. One process
builds while the others wait, and then use what it built.
"""

import contextlib
import itertools
import json
import logging
import os
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import filelock
import numpy as np

from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import replacing

_log = logging.getLogger(__name__)

_FORMAT = 2
_BLOCK_BYTES = 16 * 2**20
_ADVICE = "make room there or choose another cache directory"


class Stored(NamedTuple):
    """An array, memory-mapped and read-only, and what its builder noted beside it."""

    array: np.ndarray
    notes: dict[str, Any]


def cached_array(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, Any],
    build: Callable[[dict[str, Any]], Iterable[np.ndarray]],
) -> Stored:
    """Open the array at ``path``; build it first unless it is there, whole and current.

    Args:
      path: The folder and the name, without a suffix.
      fields: What the array is a function of, JSON-able. An array that was made from
        other fields is built again, never used.
      build: Gives the rows in pieces ``[b, ...]``, and may put JSON-able notes into the
        dictionary that it is called with.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     build = lambda notes: [np.arange(2), np.arange(1)]
    ...     cached_array(f"{folder}/three", fields={"version": 1}, build=build).array
    memmap([0, 1, 0])
    """
    path = pathlib.Path(path)
    array, header = (path.with_name(f"{path.name}.{end}") for end in ("npy", "json"))
    fields = json.loads(json.dumps({"format": _FORMAT, **fields}))
    # Without the lock first: an intact array in a read-only folder is fine.
    with contextlib.suppress(_Stale):
        return _load(array, header, fields)
    with _locked(path, array, header):
        try:
            return _load(array, header, fields)
        except _Stale as stale:
            level = logging.WARNING if array.exists() else logging.INFO
            _log.log(level, "building %s: %s", array, stale)
        notes: dict[str, Any] = {}
        with replacing(header, _ADVICE) as header_file:
            with replacing(array, _ADVICE) as array_file:
                _write(array_file, build(notes))
            content = {"fields": fields, "notes": notes, "crc32": _crc32(array)}
            header_file.write(json.dumps(checksums.add(content)).encode())
        return _load(array, header, fields)


class _Stale(Exception):
    """Why a stored array cannot be used."""


def _load(
    array: pathlib.Path, header: pathlib.Path, fields: Mapping[str, Any]
) -> Stored:
    """Open and verify, or raise ``_Stale``."""
    try:
        noted = checksums.verify(json.loads(header.read_text()))
        for name in sorted(noted["fields"].keys() | fields.keys()):
            if noted["fields"].get(name) != fields.get(name):
                raise _Stale(f"it was made from another {name}")
        if _crc32(array) != noted["crc32"]:
            raise _Stale("it is damaged: a checksum does not match")
        return Stored(np.load(array, mmap_mode="r"), noted["notes"])
    except _Stale:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise _Stale("it is not there yet") from None
    except OSError as error:
        raise UserError(
            f"cannot read the cache {array}: {error.strerror or error}; "
            "mend its permissions or choose another cache directory"
        ) from error
    except Exception:  # whatever bad JSON, or good JSON of another kind, leads to
        raise _Stale("its header is damaged") from None


def _write(file: BinaryIO, pieces: Iterable[np.ndarray]) -> None:
    """Write pieces of one dtype and row shape as one array in NumPy's format.

    The file is written, not mapped: on a full disk a write fails with a message, and
    a touch of a map with a dead process.
    """
    pieces = iter(pieces)
    if (first := next(pieces, None)) is None:
        raise ValueError("a stored array needs at least one row")

    def write_header(length: int) -> None:
        # NumPy pads it, so that its size does not depend on the length.
        header = {"descr": first.dtype.str, "fortran_order": False}
        shape = (length, *first.shape[1:])
        np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})

    write_header(0)
    length = 0
    for rows in itertools.chain([first], pieces):
        if (rows.dtype, rows.shape[1:]) != (first.dtype, first.shape[1:]):
            raise ValueError(f"{rows.dtype}{rows.shape} does not continue the array")
        file.write(rows.tobytes())
        length += len(rows)
    file.seek(0)
    write_header(length)


@contextlib.contextmanager
def _locked(path: pathlib.Path, *files: pathlib.Path) -> Iterator[None]:
    """Hold the array's lock; what a failed or killed build left is removed."""
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            _log.info("waiting for the process that is building %s", files[0])
            lock.acquire()
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot write {files[0]}: {reason}; {_ADVICE}") from error
    try:
        yield
    finally:
        for file in files:
            file.with_name(f".{file.name}.part").unlink(missing_ok=True)
        lock.release()


def _crc32(path: pathlib.Path) -> list[int]:
    """CRC-32 of every block of a file, which is read without mapping it."""
    block = memoryview(bytearray(_BLOCK_BYTES))
    sums = []
    with open(path, "rb") as file:
        while size := file.readinto(block):
            sums.append(zlib.crc32(block[:size]))
    return sums
