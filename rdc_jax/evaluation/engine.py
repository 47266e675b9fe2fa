"""Drives passes over the episodes of a data set, on all devices of all processes.

Episodes go in chunks. A chunk is split over the processes, each of which splits its
share over its own devices; nothing is communicated but the counts at the end. Every
chunk has the same shape, so there is one compilation for each shape of task.
"""

import collections
import logging
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Array, Int

from rdc_jax.evaluation.programs import Programs
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.processes import any_process, broadcast_from_first

_log = logging.getLogger(__name__)


@runtime_checkable
class Pass(Protocol):
    """One way over the episodes of a data set.

    Attributes:
      ahead: Chunks to send to the devices before the first one is collected.
    """

    ahead: int

    def most(self, episodes: int) -> int:
        """How many of the episodes a device can take at a time, by an estimate."""

    def __call__(self, numbers: Int[np.ndarray, " e"], programs: Programs) -> Array:
        """Send episodes to the devices; gives their counts, ``[e, m]``."""


class Block(NamedTuple):
    """Counts of consecutive episodes.

    Attributes:
      start: Number of the first one.
      counts: One row an episode, one column for each thing counted.
    """

    start: int
    counts: Int[np.ndarray, "e m"]


class Engine:
    """Computes counts in chunks that fit into memory.

    Args:
      chunk: Most episodes at a time over all devices of all processes, rounded up to
        a multiple of them; 0: as many as an estimate allows.
      devices: Of this process; all by default.

    Attributes:
      programs: What is compiled for these devices.
    """

    def __init__(
        self, *, chunk: int = 0, devices: Sequence[jax.Device] | None = None
    ) -> None:
        self.programs = Programs(devices)
        self._chunk = chunk

    def run(self, work: Pass, episodes: range) -> Iterator[Block]:
        """Count over episodes.

        A range that begins inside a chunk recomputes the chunk and drops what was not
        asked for: so the work is divided as in a run that began at 0.

        Args:
          work: What to do with an episode.
          episodes: Their numbers, one after the other.

        Yields:
          Counts, in order.

        Raises:
          UserError: One episode a device does not fit into memory.
        """
        done = episodes.start
        while done < episodes.stop:
            share = self._share(work, episodes.stop)
            chunk = share * jax.process_count()
            aligned = range(done - done % chunk, episodes.stop)
            for start, counts in self._chunks(work, aligned, share):
                if counts is None:
                    self._halve(share)
                    break
                yield Block(done, counts[done - start : episodes.stop - start])
                done = min(start + chunk, episodes.stop)

    def _chunks(
        self, work: Pass, episodes: range, share: int
    ) -> Iterator[tuple[int, Int[np.ndarray, "e m"] | None]]:
        """Counts of each chunk; later ones are computed while one is collected."""
        pending: collections.deque[tuple[int, Array | None]] = collections.deque()
        chunk = share * jax.process_count()
        for start in range(episodes.start, episodes.stop, chunk):
            first = start + share * jax.process_index()
            # The last chunk is filled up with its last episode.
            numbers = np.minimum(np.arange(first, first + share), episodes.stop - 1)
            pending.append((start, self._dispatch(work, numbers)))
            if len(pending) > work.ahead:
                number, counts = pending.popleft()
                yield number, _collect(counts)
        for number, counts in pending:
            yield number, _collect(counts)

    def _dispatch(self, work: Pass, numbers: Int[np.ndarray, " e"]) -> Array | None:
        """Send this process's share of a chunk to its devices; None: no memory."""
        try:
            return work(numbers, self.programs)
        except jax.errors.JaxRuntimeError as error:
            if _out_of_memory(error):
                return None
            raise

    def _share(self, work: Pass, episodes: int) -> int:
        """Episodes of a chunk that one process takes: a multiple of its devices."""
        devices = self.programs.devices
        everywhere = devices * jax.process_count()
        chunk = self._chunk or everywhere * broadcast_from_first(work.most(episodes))
        # Chunks of one size: a short last one would be filled up for nothing.
        chunk = math.ceil(episodes / math.ceil(episodes / chunk))
        return math.ceil(chunk / everywhere) * devices

    def _halve(self, share: int) -> None:
        if share == self.programs.devices:
            raise UserError(
                "one episode a device does not fit into memory: lower --config.query "
                "or --config.way, or use a device with more memory"
            )
        self._chunk = share * jax.process_count() // 2
        _log.warning(
            "a chunk of %d episodes does not fit into memory: going on with %d at a "
            "time (--config.chunk)",
            *(share * jax.process_count(), self._chunk),
        )


def _collect(counts: Array | None) -> Int[np.ndarray, "e m"] | None:
    """Counts of a whole chunk, or None when any process was out of memory."""
    try:
        local = None if counts is None else np.asarray(counts)
    except jax.errors.JaxRuntimeError as error:
        if not _out_of_memory(error):
            raise
        local = None
    if any_process(local is None):
        return None
    if jax.process_count() == 1:
        return local
    return np.asarray(multihost_utils.process_allgather(local, tiled=True))


def _out_of_memory(error: jax.errors.JaxRuntimeError) -> bool:
    return "RESOURCE_EXHAUSTED" in str(error)
