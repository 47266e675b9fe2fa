"""The record of what is done: a line an episode, in order, appended, never changed.

A line is ``<checksum> <json>``. The checksum covers the line and, by the checksum
before it, all lines above; so a line that was torn by a kill, damaged, moved or brought
from elsewhere is found out, and everything from it on is computed again. The first
line, the header, says what the results are a function of; a line for each group of
methods says what is counted for it, so that a later run may add groups.
"""

import collections
import json
import logging
import os
import pathlib
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import replacing
from rdc_jax.runtime.workdir import check_same_run

_log = logging.getLogger(__name__)

_FORMAT = 3
# What may differ when a run goes on: where things are (their content is held by
# fingerprints), which methods (groups hold those on record) and how many episodes are
# wanted, how many are computed at a time, what is kept beside the counts, and what
# results are called.
_FREE = frozenset(
    {
        "config.systems",
        "config.source",  # Groups that draw from it hold its fingerprint.
        "config.finetune.answer",  # Of older runs.
        "config.title",
        "config.baseline",
        "config.methods",
        "config.episodes",
        "config.data_dir",
        "config.cache_dir",
        "config.checkpoint",
        "config.chunk",
        "config.plugins",
        "config.predictions",
        "config.pretrain.plugins",
        "checkpoint.training",
    }
)


class Stage(NamedTuple):
    """Episodes that are computed together, in order.

    Attributes:
      dataset: Name of the data set.
      shot: Labelled images a class, or what they are drawn by.
      group: The methods that share a pass: ``features`` for all that need features.
    """

    dataset: str
    shot: Shot
    group: str


class Ledger:
    """The ledger of one work directory; only one process may have it open.

    ``header`` says what the results are a function of.

    Attributes:
      groups: What is counted for each group of methods, in the order they were begun.

    Raises:
      UserError: The file is of another run, no ledger, or cannot be written.
    """

    def __init__(self, path: pathlib.Path, header: Mapping[str, Any]) -> None:
        self.path = path
        own = json.loads(json.dumps({"format": _FORMAT, **header}))
        if not path.exists():
            with replacing(path, "make room, or take another --workdir") as file:
                file.write(_line(own, 0)[0])
        self._counts: dict[Stage, list[list[int]]] = collections.defaultdict(list)
        self._checksum = 0
        self.groups: dict[str, dict[str, Any]] = {}
        try:
            self.header = self._read(own)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise UserError(
                f"cannot open {path}: {error.strerror or error}; mend its permissions, "
                "or take another --workdir"
            ) from error

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def begin(self, group: str, record: Mapping[str, Any]) -> None:
        """Note what is counted for a group of methods.

        ``record`` has ``columns``, and what else the counts are a function of.

        Raises:
          UserError: Something else is on record, or the disk is full.
        """
        if group in self.groups:
            before, now = ({"groups": {group: r}} for r in (self.groups[group], record))
            check_same_run(self.path.parent, before, now, free=frozenset())
            return
        self.groups[group] = {**record}
        line, self._checksum = _line({"group": group, **record}, self._checksum)
        self._write(line)

    def done(self, stage: Stage) -> int:
        """How many episodes of a stage are on record: the first ones."""
        return len(self._counts[stage])

    def counts(self, stage: Stage) -> Int[np.ndarray, "e m"]:
        """The counts of a stage, one row an episode."""
        return np.array(self._counts[stage], np.int64)

    def append(self, stage: Stage, counts: Int[np.ndarray, "e m"]) -> None:
        """Add the next episodes of a stage; they are on disk when this returns.

        Raises:
          UserError: The disk is full.
        """
        lines = b""
        for row in counts.tolist():
            record = [*stage, self.done(stage), row]
            line, self._checksum = _line(record, self._checksum)
            self._counts[stage].append(row)
            lines += line
        self._write(lines)

    def _write(self, lines: bytes) -> None:
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror or error}; make room, then "
                "run the same command to go on"
            ) from error

    def _read(self, header: dict[str, Any]) -> dict[str, Any]:
        """Read all whole lines, cut off what follows them, give the header."""
        content = self.path.read_bytes()
        lines = _whole_lines(content)
        end, found, self._checksum = next(lines, (0, None, 0))
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise UserError(
                f"{self.path} is not a ledger of this version, or its first line is "
                "damaged: move it away, or take another --workdir"
            )
        check_same_run(
            self.path.parent, _without_names(found), _without_names(header), free=_FREE
        )
        for size, record, checksum in lines:
            if not self._accept(record):
                break
            end, self._checksum = end + size, checksum
        if end < len(content):
            episodes = sum(map(len, self._counts.values()))
            _log.warning(
                "%s is damaged after %d episodes, as by a kill while writing: the last "
                "%d bytes are dropped, their episodes computed again",
                *(self.path, episodes, len(content) - end),
            )
            os.truncate(self.path, end)
        return found

    def _accept(self, record: Any) -> bool:
        """Note a record, if it is the next one of its stage, or of a new group."""
        if isinstance(record, dict) and record.get("group", "") not in self.groups:
            group = {**record}
            self.groups[group.pop("group", "")] = group
            return True
        try:
            *stage, episode, counts = record
            known = self._counts[Stage(*stage)]
        except (TypeError, ValueError):  # Whole, but not of our making.
            return False
        if episode != len(known):
            return False
        known.append(counts)
        return True


def _without_names(header: dict[str, Any]) -> dict[str, Any]:
    """Without the paths of models and the choices, which may be added to."""
    config = {**header.get("config", {})}
    config.pop("checkpoints", None)
    # What was chosen is in the names of the methods.
    return {**header, "config": config, "choice": None}


def _line(value: Any, previous: int) -> tuple[bytes, int]:
    """One line and its checksum, which continues the one before."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    checksum = zlib.crc32(text, previous)
    return b"%08x %s\n" % (checksum, text), checksum


def _whole_lines(content: bytes) -> Iterator[tuple[int, Any, int]]:
    """Size, value and checksum of each line, up to the first one that is not whole."""
    previous = 0
    for line in content.splitlines(keepends=True):
        stated, _, text = line.partition(b" ")
        checksum = zlib.crc32(text.removesuffix(b"\n"), previous)
        if not line.endswith(b"\n") or stated != b"%08x" % checksum:
            return
        try:
            value = json.loads(text)
        except ValueError:  # A blank line repeats the checksum before it.
            return
        yield len(line), value, checksum
        previous = checksum
