"""Arrays of tasks in a file: a record a task, in order, appended, never changed.

A record is a checksum and the bytes of an array. The checksum covers both the array
and, by the checksum before it, all records above; the first one continues that of what
the file belongs to. So a record that was torn, damaged or left by another run is found
out, and it and all that follow are written again.
"""

import json
import os
import pathlib
import zlib
from typing import Any

import numpy as np
from jaxtyping import Shaped

from rdc_jax.runtime.errors import UserError


class TaskLog:
    """One array of each task of a stage.

    Args:
      path: The file; made, with its folder, by the first ``append``.
      identity: What the arrays are a function of, JSON-able.
      shape: Shape of one task's array.
      dtype: Type of its entries.

    Attributes:
      done: How many tasks are on record: the first ones.
    """

    def __init__(
        self,
        path: pathlib.Path,
        identity: Any,
        shape: tuple[int, ...],
        dtype: type[np.number],
    ) -> None:
        little_endian = np.dtype(dtype).newbyteorder("<")
        self._path = path
        self._dtype = np.dtype(
            [("checksum", "<u4"), ("row", little_endian, shape)], align=False
        )
        self._checksum = zlib.crc32(json.dumps(identity, sort_keys=True).encode())
        self.done = 0
        for record in self._records():
            checksum = zlib.crc32(record["row"].tobytes(), self._checksum)
            if checksum != record["checksum"]:
                break
            self._checksum = checksum
            self.done += 1

    def append(self, first: int, rows: Shaped[np.ndarray, "e ..."]) -> None:
        """Add the arrays of consecutive tasks; they are on disk when this returns.

        ``first`` is the number of the first of them, at most ``done``; those on record
        are passed over.

        Raises:
          UserError: The disk is full, or the folder cannot be written.
        """
        rows = rows[self.done - first :]
        records = np.zeros(len(rows), self._dtype)
        records["row"] = rows
        for record in records:
            self._checksum = zlib.crc32(record["row"].tobytes(), self._checksum)
            record["checksum"] = self._checksum
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                # What follows the last whole record is torn, or of another run.
                file.truncate(self.done * self._dtype.itemsize)
                file.write(records.tobytes())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(
                f"cannot write {self._path}: {error.strerror or error}; make room, "
                "then run the same command to go on"
            ) from error
        self.done += len(rows)

    def read(self, tasks: int) -> Shaped[np.ndarray, "e ..."]:
        """Give the arrays of the first tasks, memory-mapped."""
        return self._records()[:tasks]["row"]

    def _records(self) -> np.ndarray:
        """Whole records, as far as their number tells."""
        try:
            whole = self._path.stat().st_size // self._dtype.itemsize
        except FileNotFoundError:
            whole = 0
        except OSError as error:
            raise UserError(
                f"cannot read {self._path}: {error.strerror or error}; move what is in "
                "its way"
            ) from error
        if not whole:
            return np.zeros(0, self._dtype)
        return np.memmap(self._path, self._dtype, "r", shape=(whole,))
