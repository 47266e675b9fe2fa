"""Runs functions of one task over many, on all devices of all processes.

Tasks go in chunks. A chunk is split over the processes, each of which splits its share
over its own devices; nothing is communicated but the counts at the end. Every chunk has
the same shape, so there is one compilation for each shape of task.
"""

import collections
import functools
import logging
import math
import operator
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Int

from rdc_jax.core.batching import over_episodes
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.processes import any_process, broadcast_from_first, make_layout

_log = logging.getLogger(__name__)

PyTree = Any
Counter = Callable[[Int[np.ndarray, " e"]], PyTree]
"""Sends the tasks of these numbers to the devices; gives arrays ``[e, ...]`` of them,
such as counts."""


class Engine:
    """Maps functions over tasks, in chunks that fit into memory.

    Args:
      chunk: Most tasks at a time over all devices of all processes, rounded up to a
        multiple of them; 0: as many as an estimate allows.
      devices: Of this process; all by default.

    Attributes:
      layout: Where arrays live: tasks sharded, models replicated.
      devices: How many there are.
      compiling: Seconds spent on compilation so far.
    """

    def __init__(
        self, *, chunk: int = 0, devices: Sequence[jax.Device] | None = None
    ) -> None:
        self.layout = make_layout(devices or jax.local_devices())
        self.devices = self.layout.mesh.size
        self.compiling = 0.0
        self._chunk = chunk
        self._compiled: dict[Hashable, Callable[..., PyTree]] = {}

    def map(
        self,
        fn: Callable[..., PyTree],
        *args: PyTree,
        static: tuple[Hashable, ...] = (),
        shared: tuple[PyTree, ...] = (),
        donated: tuple[PyTree, ...] = (),
    ) -> PyTree:
        """Give ``fn(*static, *shared, *donated, *args)`` of each task.

        Args:
          fn: A pure function of one task; compiled once for each shape and static.
          *args: Arrays with a leading task axis.
          static: Known to the compiler.
          shared: The same for all tasks.
          donated: As ``args``; their memory is used again, so they are lost.

        Returns:
          Arrays with a leading task axis.
        """
        arguments = (shared, donated, args)
        leaves, tree = jax.tree.flatten(arguments)
        key = (fn, static, tree, *((leaf.shape, leaf.dtype) for leaf in leaves))
        if key not in self._compiled:
            began = time.monotonic()
            jitted = jax.jit(self._sharded(fn, static), donate_argnums=(1,))
            self._compiled[key] = jitted.lower(*arguments).compile()
            seconds = time.monotonic() - began
            self.compiling += seconds
            tasks = len(leaves[-1]) * jax.process_count()
            name = fn.__name__.strip("_")
            _log.info("compiled %s for %d tasks in %.1f s", name, tasks, seconds)
        return self._compiled[key](*arguments)

    def _sharded(
        self, fn: Callable[..., PyTree], static: tuple[Hashable, ...]
    ) -> Callable[..., PyTree]:
        """Each device loops over its own tasks.

        An iteration that waits for convergence would otherwise wait for the slowest
        task of all devices.
        """

        def share(shared: PyTree, donated: PyTree, args: PyTree) -> PyTree:
            one = functools.partial(fn, *static, *shared)
            return over_episodes(one)(*donated, *args)

        sharded, replicated = (sharding.spec for sharding in self.layout)
        return jax.shard_map(
            share,
            mesh=self.layout.mesh,
            in_specs=(replicated, sharded, sharded),
            out_specs=sharded,
            check_vma=False,
        )

    def run(
        self, count: Counter, tasks: range, *, max_batch: int, prefetch: int = 0
    ) -> Iterator[PyTree]:
        """Count over consecutive tasks.

        Args:
          count: What is counted; called with as many numbers in every process.
          tasks: Their numbers.
          max_batch: How many of them a device can take at a time, by an estimate.
          prefetch: Chunks to send to the devices before the first one is collected.

        Yields:
          What ``count`` gives, as NumPy arrays, in order.

        Raises:
          UserError: One task a device does not fit into memory.
        """
        done = tasks.start
        while done < tasks.stop:
            share = self._share(max_batch, tasks.stop)
            chunk = share * jax.process_count()
            # A run that goes on inside of a chunk computes the whole chunk and drops
            # what is on record: so work is divided as in a run that began at 0.
            aligned = range(done - done % chunk, tasks.stop)
            for start, counts in self._chunks(count, aligned, share, prefetch):
                if counts is None:
                    self._halve(share)
                    break
                wanted = slice(done - start, tasks.stop - start)
                yield jax.tree.map(operator.itemgetter(wanted), counts)
                done = min(start + chunk, tasks.stop)

    def _chunks(
        self, count: Counter, tasks: range, share: int, prefetch: int
    ) -> Iterator[tuple[int, PyTree]]:
        """Counts of each chunk; later ones are computed while one is collected."""
        pending: collections.deque[tuple[int, PyTree]] = collections.deque()
        for start in range(tasks.start, tasks.stop, share * jax.process_count()):
            first = start + share * jax.process_index()
            # The last chunk is filled up with its last task.
            numbers = np.minimum(np.arange(first, first + share), tasks.stop - 1)
            try:
                pending.append((start, count(numbers)))
            except jax.errors.JaxRuntimeError as error:
                _raise_others(error)
                pending.append((start, None))
            if len(pending) > prefetch:
                number, counts = pending.popleft()
                yield number, _collect(counts)
        for number, counts in pending:
            yield number, _collect(counts)

    def _share(self, max_batch: int, tasks: int) -> int:
        """Tasks of a chunk that one process takes: a multiple of its devices."""
        everywhere = self.devices * jax.process_count()
        chunk = self._chunk or everywhere * broadcast_from_first(max_batch)
        # Chunks of one size: a short last one would be filled up for nothing.
        chunk = math.ceil(tasks / math.ceil(tasks / chunk))
        return math.ceil(chunk / everywhere) * self.devices

    def _halve(self, share: int) -> None:
        if share == self.devices:
            raise UserError(
                "one task a device does not fit into memory: lower --config.query or "
                "--config.way, or use a device with more memory"
            )
        tasks = share * jax.process_count()
        self._chunk = tasks // 2
        _log.warning(
            "a chunk of %d tasks does not fit into memory: going on with %d at a time "
            "(--config.chunk)",
            *(tasks, self._chunk),
        )


def _collect(counts: PyTree) -> PyTree:
    """Counts of a whole chunk, or None when any process was out of memory."""
    try:
        local = jax.tree.map(np.asarray, counts)
    except jax.errors.JaxRuntimeError as error:  # It comes to light only now.
        _raise_others(error)
        local = None
    if any_process(local is None):
        return None
    if jax.process_count() == 1:
        return local
    return jax.tree.map(
        np.asarray, multihost_utils.process_allgather(local, tiled=True)
    )


def _raise_others(error: jax.errors.JaxRuntimeError) -> None:
    """Raise the error again, unless memory did not suffice."""
    if "RESOURCE_EXHAUSTED" not in str(error):
        raise error
