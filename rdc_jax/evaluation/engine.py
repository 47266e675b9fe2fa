"""Runs a judge over the episodes of a data set, on all devices of all processes.

Episodes go in chunks. A chunk is split over the processes, each of which splits its
share over its own devices; nothing is communicated but the counts at the end. Every
chunk has the same shape, so there is one compilation for each shape of task.
"""

import collections
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float32, Int

from rdc_jax.core.batching import chunk_size
from rdc_jax.data.episodes import EpisodeSampler
from rdc_jax.errors import UserError
from rdc_jax.evaluation.judge import Judge
from rdc_jax.evaluation.processes import agreed
from rdc_jax.training.parallel import any_process

_log = logging.getLogger(__name__)

_AXIS = "episode"


class Block(NamedTuple):
    """Counts of consecutive episodes.

    Attributes:
      start: Number of the first one.
      counts: One row an episode, one column for each of ``judge.columns``.
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
      seconds_compiling: Spent on compilation so far.
    """

    def __init__(
        self, *, chunk: int = 0, devices: Sequence[jax.Device] | None = None
    ) -> None:
        mesh = Mesh(np.array(devices or jax.local_devices()), (_AXIS,))
        self._mesh = mesh
        self._split = NamedSharding(mesh, PartitionSpec(_AXIS))
        self._copied = NamedSharding(mesh, PartitionSpec())
        self._gather = jax.jit(
            lambda feat_nd, indices_em: feat_nd[indices_em], out_shardings=self._split
        )
        self.seconds_compiling = 0.0
        self._chunk = chunk
        self._compiled: dict[Any, Callable[[Array, Array], Array]] = {}

    def run(
        self,
        judge: Judge,
        features: Float32[np.ndarray, "n d"],
        sampler: EpisodeSampler,
        episodes: range,
    ) -> Iterator[Block]:
        """Judge episodes.

        A range that begins inside a chunk recomputes the chunk and drops what was not
        asked for: so the work is divided as in a run that began at 0.

        Args:
          judge: Of one episode.
          features: Of all images of the data set.
          sampler: Of its episodes.
          episodes: Their numbers, one after the other.

        Yields:
          Counts, in order.

        Raises:
          UserError: One episode a device does not fit into memory.
        """
        feat_nd = jax.device_put(np.asarray(features), self._copied)
        done = episodes.start
        while done < episodes.stop:
            share = self._share(judge, sampler, feat_nd.shape[1], episodes.stop)
            chunk = share * jax.process_count()
            aligned = range(done - done % chunk, episodes.stop)
            for start, counts in self._chunks(judge, feat_nd, sampler, aligned, share):
                if counts is None:
                    self._halve(share)
                    break
                yield Block(done, counts[done - start : episodes.stop - start])
                done = min(start + chunk, episodes.stop)

    def _chunks(
        self,
        judge: Judge,
        feat_nd: Array,
        sampler: EpisodeSampler,
        episodes: range,
        share: int,
    ) -> Iterator[tuple[int, Int[np.ndarray, "e m"] | None]]:
        """Counts of each chunk; the next one is computed while one is collected."""
        pending: collections.deque[tuple[int, Array | None]] = collections.deque()
        chunk = share * jax.process_count()
        for start in range(episodes.start, episodes.stop, chunk):
            first = start + share * jax.process_index()
            # The last chunk is filled up with its last episode.
            numbers = np.minimum(np.arange(first, first + share), episodes.stop - 1)
            pending.append((start, self._dispatch(judge, feat_nd, sampler, numbers)))
            if len(pending) > 1:
                number, counts = pending.popleft()
                yield number, _collect(counts)
        for number, counts in pending:
            yield number, _collect(counts)

    def _dispatch(
        self,
        judge: Judge,
        feat_nd: Array,
        sampler: EpisodeSampler,
        numbers: Int[np.ndarray, " e"],
    ) -> Array | None:
        """Send this process's share of a chunk to its devices; None: no memory."""
        tasks = sampler(numbers)
        try:
            indices_em, labels_em = jax.device_put(
                (tasks.indices, tasks.labels), self._split
            )
            feat_emd = self._gather(feat_nd, indices_em)
            return self._compile(judge, feat_emd, labels_em)(feat_emd, labels_em)
        except jax.errors.JaxRuntimeError as error:
            if _out_of_memory(error):
                return None
            raise

    def _compile(
        self, judge: Judge, feat_emd: Array, labels_em: Array
    ) -> Callable[[Array, Array], Array]:
        """Compile the judge for a share of a chunk; once for each shape."""
        key = (judge, feat_emd.shape)
        if key not in self._compiled:
            began = time.monotonic()
            # Each device loops by itself: an iteration that waits for convergence
            # would otherwise wait for the slowest episode of all devices.
            spec = PartitionSpec(_AXIS)
            mapped = jax.shard_map(
                jax.vmap(judge),
                mesh=self._mesh,
                in_specs=spec,
                out_specs=spec,
                check_vma=False,
            )
            self._compiled[key] = jax.jit(mapped).lower(feat_emd, labels_em).compile()
            seconds = time.monotonic() - began
            self.seconds_compiling += seconds
            _log.info(
                "compiled for %d episodes at a time of %d images in %.1f s",
                feat_emd.shape[0] * jax.process_count(),
                feat_emd.shape[1],
                seconds,
            )
        return self._compiled[key]

    def _share(
        self, judge: Judge, sampler: EpisodeSampler, d: int, episodes: int
    ) -> int:
        """Episodes of a chunk that one process takes: a multiple of its devices."""
        spec, devices = sampler.spec, self._mesh.size
        everywhere = devices * jax.process_count()
        n = spec.support_size + spec.query_size
        chunk = self._chunk
        if not chunk:
            shapes = (
                jax.ShapeDtypeStruct((episodes, n, d), np.float32),
                jax.ShapeDtypeStruct((episodes, n), np.int32),
            )
            chunk = everywhere * agreed(chunk_size(judge, *shapes))
        # Chunks of one size: a short last one would be filled up for nothing.
        chunk = math.ceil(episodes / math.ceil(episodes / chunk))
        return math.ceil(chunk / everywhere) * devices

    def _halve(self, share: int) -> None:
        if share == self._mesh.size:
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
