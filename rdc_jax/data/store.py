"""Large arrays on disk that are either whole and current, or built again.

An array called ``name`` is three files in a folder: ``name.npy``, which any program can
open; ``name.json``, which says what the array was made from and holds a checksum of
every block of it; and a lock. Both take their place whole, the header last, so that a
kill at any point leaves nothing that looks whole. One process builds while the others
wait, and then use what it built.
"""

import contextlib
import json
import logging
import os
import pathlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import filelock
import numpy as np

from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import replacing

_log = logging.getLogger(__name__)

_FORMAT = 1
_BLOCK_BYTES = 16 * 2**20
_ADVICE = "make room there or choose another cache directory"


class Stored(NamedTuple):
    """An array, memory-mapped and read-only, and what its builder noted beside it."""

    array: np.ndarray
    extra: dict[str, Any]


class Writer:
    """Takes the rows of an array that is being built, in order.

    The file is written, not mapped: on a full disk a write fails with a message, and
    a touch of a map with a dead process.

    Attributes:
      extra: JSON-able notes to keep beside the array.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.extra: dict[str, Any] = {}
        self.layout: dict[str, Any] = {}
        self._file = file

    def append(self, rows: np.ndarray) -> None:
        """Add rows ``[b, ...]``; all must be of one dtype and row shape."""
        if not self.layout:
            self.layout = {"dtype": rows.dtype.str, "shape": [0, *rows.shape[1:]]}
            self.write_header()
        length, *row_shape = self.layout["shape"]
        if [rows.dtype.str, *rows.shape[1:]] != [self.layout["dtype"], *row_shape]:
            raise ValueError(f"{rows.dtype}{rows.shape} does not continue the array")
        self._file.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        self.layout["shape"] = [length + len(rows), *row_shape]

    def write_header(self) -> None:
        """NumPy pads its header, so that the size does not depend on the length."""
        if not self.layout:
            raise ValueError("an array of the store needs at least one row")
        self._file.seek(0)
        shape = tuple(self.layout["shape"])
        header = {"descr": self.layout["dtype"], "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


def cached_array(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, Any],
    build: Callable[[Writer], None],
) -> Stored:
    """Open the array at ``path``; build it first unless it is there, whole and current.

    Args:
      path: The folder and the name, without a suffix.
      fields: What the array is a function of, JSON-able. An array that was made from
        other fields is built again, never used.
      build: Appends the rows to the writer.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     build = lambda writer: writer.append(np.arange(3))
    ...     cached_array(f"{folder}/three", fields={"version": 1}, build=build).array
    memmap([0, 1, 2])
    """
    path = pathlib.Path(path)
    array, header = (path.with_name(f"{path.name}.{end}") for end in ("npy", "json"))
    fields = json.loads(json.dumps(fields))
    # Without the lock first: an intact array in a read-only folder is fine.
    with contextlib.suppress(_Stale):
        return _load(array, header, fields)
    with _locked(path, array, header):
        try:
            return _load(array, header, fields)
        except _Stale as stale:
            level = logging.WARNING if array.exists() else logging.INFO
            _log.log(level, "building %s: %s", array, stale)
        with replacing(header, _ADVICE) as header_file:
            with replacing(array, _ADVICE) as array_file:
                writer = Writer(array_file)
                build(writer)
                writer.write_header()
            content = {
                "format": _FORMAT,
                "fields": fields,
                **writer.layout,
                "extra": writer.extra,
                "checksums": _checksums(array, np.load(array, mmap_mode="r").offset),
            }
            content["sha256"] = checksums.of_json(content)
            header_file.write(json.dumps(content).encode())
        return _load(array, header, fields)


class _Stale(Exception):
    """Why a stored array cannot be used."""


def _load(
    array: pathlib.Path, header: pathlib.Path, fields: Mapping[str, Any]
) -> Stored:
    """Open and verify, or raise ``_Stale``."""
    try:
        noted = json.loads(header.read_text())
        intact = noted.pop("sha256") == checksums.of_json(noted)
        rows = np.load(array, mmap_mode="r")
    except (FileNotFoundError, NotADirectoryError):
        raise _Stale("it is not there yet") from None
    except OSError as error:
        raise UserError(
            f"cannot read the cache {array}: {error.strerror or error}; "
            "mend its permissions or choose another cache directory"
        ) from error
    except Exception:  # NumPy raises nearly everything on a damaged header.
        raise _Stale("it is damaged") from None
    if not intact:
        raise _Stale("its header was changed")
    if noted["format"] != _FORMAT:
        raise _Stale(f"it is of format {noted['format']}, not {_FORMAT}")
    for name in sorted(noted["fields"].keys() | fields.keys()):
        if noted["fields"].get(name) != fields.get(name):
            raise _Stale(f"it was made from another {name}")
    layout = [rows.dtype.str, list(rows.shape), rows.flags.c_contiguous]
    if layout != [noted["dtype"], noted["shape"], True]:
        raise _Stale("it is damaged: the array is not of the noted shape")
    if _checksums(array, rows.offset) != noted["checksums"]:
        raise _Stale("it is damaged: a checksum does not match")
    return Stored(rows, noted["extra"])


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


def _checksums(path: pathlib.Path, offset: int) -> list[int]:
    """CRC-32 of every block from ``offset`` on, read without mapping the file."""
    block = memoryview(bytearray(_BLOCK_BYTES))
    sums = []
    with open(path, "rb") as file:
        file.seek(offset)
        while size := file.readinto(block):
            sums.append(zlib.crc32(block[:size]))
    return sums
