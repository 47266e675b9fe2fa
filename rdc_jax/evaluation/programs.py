"""Functions of one episode, compiled for a share of episodes on each local device."""

import functools
import logging
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

_log = logging.getLogger(__name__)

_AXIS = "episode"

PyTree = Any


class Programs:
    """Compiles, and remembers what is compiled.

    Args:
      devices: Of this process; all by default.

    Attributes:
      devices: How many there are.
      split: Sharding of arrays with a leading episode axis.
      copied: Sharding of arrays that every device has whole.
      seconds: Spent on compilation so far.
    """

    def __init__(self, devices: Sequence[jax.Device] | None = None) -> None:
        self._mesh = Mesh(np.array(devices or jax.local_devices()), (_AXIS,))
        self.devices = self._mesh.size
        self.split = NamedSharding(self._mesh, PartitionSpec(_AXIS))
        self.copied = NamedSharding(self._mesh, PartitionSpec())
        self.seconds = 0.0
        self._compiled: dict[Hashable, Callable[..., PyTree]] = {}

    def __call__(
        self,
        fn: Callable[..., PyTree],
        *args: PyTree,
        shared: Sequence[int] = (),
        donated: Sequence[int] = (),
    ) -> PyTree:
        """Map a function over the leading episode axis of its arguments.

        Args:
          fn: A function of one episode, hashable; compiled once for each shape.
          *args: Its arguments.
          shared: Positions of arguments that all episodes share.
          donated: Positions of arguments that are not needed afterwards.

        Returns:
          What it gives, with a leading episode axis.
        """
        leaves, tree = jax.tree.flatten(args)
        key = (fn, tree, *((leaf.shape, leaf.dtype) for leaf in leaves))
        if key not in self._compiled:
            began = time.monotonic()
            axes = tuple(None if i in shared else 0 for i in range(len(args)))
            jitted = jax.jit(self._mapped(fn, axes), donate_argnums=tuple(donated))
            self._compiled[key] = jitted.lower(*args).compile()
            seconds = time.monotonic() - began
            self.seconds += seconds
            episodes = _episodes(axes, args) * jax.process_count()
            _log.info(
                "compiled %s for %d episodes at a time in %.1f s",
                *(_name(fn), episodes, seconds),
            )
        return self._compiled[key](*args)

    def _mapped(
        self, fn: Callable[..., PyTree], axes: Sequence[int | None]
    ) -> Callable[..., PyTree]:
        """Each device loops by itself.

        An iteration that waits for convergence would otherwise wait for the slowest
        episode of all devices.
        """
        specs = tuple(
            PartitionSpec() if axis is None else PartitionSpec(_AXIS) for axis in axes
        )
        return jax.shard_map(
            functools.partial(_over_episodes, fn, axes),
            mesh=self._mesh,
            in_specs=specs,
            out_specs=PartitionSpec(_AXIS),
            check_vma=False,
        )


def _over_episodes(
    fn: Callable[..., PyTree], axes: Sequence[int | None], *args: PyTree
) -> PyTree:
    """``vmap``, but of one episode plainly.

    Weights of its own make every product of a network a batched one under ``vmap``,
    which on CPU is slower even in a batch of one.
    """
    if _episodes(axes, args) > 1:
        return jax.vmap(fn, in_axes=tuple(axes))(*args)
    one = (
        arg if axis is None else jax.tree.map(lambda leaf: leaf[0], arg)
        for arg, axis in zip(args, axes, strict=True)
    )
    return jax.tree.map(lambda leaf: leaf[None], fn(*one))


def _episodes(axes: Sequence[int | None], args: Sequence[PyTree]) -> int:
    """Length of the episode axis."""
    mapped = (arg for arg, axis in zip(args, axes, strict=True) if axis is not None)
    return next(len(leaf) for arg in mapped for leaf in jax.tree.leaves(arg))


def _name(fn: Callable[..., PyTree]) -> str:
    return getattr(fn, "__name__", type(fn).__name__).lower()
