"""Large arrays on disk that are either whole and current, or built again.

An array called ``name`` is three files in a folder: ``name.npy``, which any program can
open; ``name.json``, which says what the array was made from and holds a checksum of
every block of it; and a lock. Both are written under a temporary name, flushed to disk
and renamed into place, the header last, so that a kill at any point leaves nothing that
looks whole. One process builds while the others wait, and then use what it built.
"""

import contextlib
import dataclasses
import io
import json
import logging
import os
import pathlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import filelock
import numpy as np

from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

_FORMAT = 1
_BLOCK_BYTES = 16 * 2**20


class Stored(NamedTuple):
    """An array of the store."""

    array: np.ndarray  # memory-mapped, read-only
    extra: dict[str, Any]  # what the builder noted beside it


class Writer:
    """Takes the rows of an array that is being built, in order.

    Attributes:
      extra: JSON-able notes to keep beside the array.
    """

    def __init__(self, file: io.FileIO) -> None:
        self.extra: dict[str, Any] = {}
        self._file = file
        self._row: np.ndarray | None = None  # without content: dtype and shape
        self._length = 0

    def append(self, rows: np.ndarray) -> None:
        """Add rows ``[b, ...]``; all must be of one dtype and row shape."""
        if self._row is None:
            self._row = np.empty((0, *rows.shape[1:]), rows.dtype)
            self._write(_npy_header(self._row, 0))
        if (rows.dtype, rows.shape[1:]) != (self._row.dtype, self._row.shape[1:]):
            raise ValueError(f"{rows.dtype}{rows.shape} does not continue the array")
        self._write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        self._length += len(rows)

    def finish(self) -> dict[str, Any]:
        """Complete the file; returns what the header notes of it."""
        if self._row is None or self._length == 0:
            raise ValueError("an array of the store needs at least one row")
        self._file.seek(0)
        self._write(header := _npy_header(self._row, self._length))
        os.fsync(self._file.fileno())
        return {
            "dtype": self._row.dtype.str,
            "shape": [self._length, *self._row.shape[1:]],
            "extra": self.extra,
            "checksums": _checksums(self._file.name, len(header)),
        }

    def _write(self, data: bytes | memoryview) -> None:
        # Unbuffered, so that a full disk is noticed here and not when the file closes.
        with _writing(self._file.name):
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]


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

    Returns:
      The array, memory-mapped and read-only, and the builder's notes.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     build = lambda writer: writer.append(np.arange(3))
    ...     cached_array(f"{folder}/three", fields={"version": 1}, build=build).array
    memmap([0, 1, 2])
    """
    files = _Files(pathlib.Path(path))
    fields = json.loads(json.dumps(fields))
    # Without the lock first: an intact array in a read-only folder is fine.
    with contextlib.suppress(_Stale):
        return _load(files, fields)
    with _locked(files):
        try:
            return _load(files, fields)
        except _Stale as stale:
            _log.log(stale.level, "building %s: %s", files.array, stale)
        _build(files, fields, build)
        return _load(files, fields)


class _Stale(Exception):
    """Why a stored array cannot be used."""

    def __init__(self, reason: str, level: int = logging.WARNING) -> None:
        super().__init__(reason)
        self.level = level


@dataclasses.dataclass(frozen=True)
class _Files:
    """Where the parts of a stored array are."""

    path: pathlib.Path

    @property
    def array(self) -> pathlib.Path:
        return self.path.with_name(f"{self.path.name}.npy")

    @property
    def header(self) -> pathlib.Path:
        return self.path.with_name(f"{self.path.name}.json")

    @property
    def lock(self) -> pathlib.Path:
        return self.path.with_name(f".{self.path.name}.lock")


def _part(path: pathlib.Path) -> pathlib.Path:
    """The temporary name of a file; the lock lets one process at a time use it."""
    return path.with_name(f".{path.name}.part")


def _load(files: _Files, fields: Mapping[str, Any]) -> Stored:
    """Open and verify, or raise ``_Stale``."""
    try:
        header = json.loads(files.header.read_text())
        sealed = header.pop("sha256") == checksums.of_json(header)
        array = np.load(files.array, mmap_mode="r")
    except (FileNotFoundError, NotADirectoryError):
        raise _Stale("it is not there yet", logging.INFO) from None
    except OSError as error:
        raise UserError(
            f"cannot read the cache {files.array}: {error.strerror or error}; "
            "mend its permissions or choose another cache directory"
        ) from error
    except Exception:  # NumPy raises nearly everything on a damaged header.
        raise _Stale("it is damaged") from None
    if not sealed:
        raise _Stale("its header was changed")
    if header["format"] != _FORMAT:
        raise _Stale(f"it is of format {header['format']}, not {_FORMAT}", logging.INFO)
    for name in sorted(header["fields"].keys() | fields.keys()):
        if header["fields"].get(name) != fields.get(name):
            raise _Stale(f"it was made from another {name}")
    layout = [array.dtype.str, list(array.shape), array.flags.c_contiguous]
    if layout != [header["dtype"], header["shape"], True]:
        raise _Stale("it is damaged: the array is not of the noted shape")
    if _checksums(files.array, array.offset) != header["checksums"]:
        raise _Stale("it is damaged: a checksum does not match")
    return Stored(array, header["extra"])


def _build(
    files: _Files, fields: Mapping[str, Any], build: Callable[[Writer], None]
) -> None:
    """Write both files under temporary names, then rename them into place."""
    with _writing(files.array):
        file = _part(files.array).open("w+b", buffering=0)
    with file:
        writer = Writer(file)
        build(writer)
        with _writing(files.array):
            header = {"format": _FORMAT, "fields": fields, **writer.finish()}
    header["sha256"] = checksums.of_json(header)
    with _writing(files.header):
        with _part(files.header).open("wb") as header_file:
            header_file.write(json.dumps(header).encode())
            header_file.flush()
            os.fsync(header_file.fileno())
        os.replace(_part(files.array), files.array)
        os.replace(_part(files.header), files.header)
        _sync_folder(files.path.parent)


@contextlib.contextmanager
def _locked(files: _Files) -> Iterator[None]:
    """Hold the array's lock; temporary files of whoever was killed are removed."""
    lock = filelock.FileLock(files.lock)
    with _writing(files.array):
        files.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            _log.info("waiting for the process that is building %s", files.array)
            lock.acquire()
    try:
        _remove_parts(files)
        yield
    finally:
        _remove_parts(files)
        lock.release()


def _remove_parts(files: _Files) -> None:
    for path in (files.array, files.header):
        _part(path).unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(path: Any) -> Iterator[None]:
    """Turn a full disk or a read-only folder into a message for people."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write the cache {path}: {error.strerror or error}; "
            "make room there or choose another cache directory"
        ) from error


def _npy_header(rows: np.ndarray, length: int) -> bytes:
    """The .npy header; NumPy pads it so that its size does not depend on the length."""
    header = np.lib.format.header_data_from_array_1_0(rows)
    header["shape"] = (length, *rows.shape[1:])
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def _checksums(path: str | os.PathLike[str], offset: int) -> list[int]:
    """CRC-32 of every block from ``offset`` on, read without mapping the file."""
    block = memoryview(bytearray(_BLOCK_BYTES))
    sums = []
    with open(path, "rb") as file:
        file.seek(offset)
        while size := file.readinto(block):
            sums.append(zlib.crc32(block[:size]))
    return sums


def _sync_folder(folder: pathlib.Path) -> None:
    """Make renames in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
