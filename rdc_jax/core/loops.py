"""Loops of a fixed length."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

StateT = TypeVar("StateT")


def repeat(step: Callable[[StateT], StateT], times: int, start: StateT) -> StateT:
    """Apply a step so many times; differentiable, and under ``vmap`` none waits.

    >>> repeat(lambda x: 2 * x, 3, 1.0).tolist()
    8.0
    """
    if jax.sharding.get_abstract_mesh().manual_axes:
        start = _varying_as(step(start), start)
    return lax.fori_loop(0, times, lambda _, state: step(state), start)


def _varying_as(other: Any, state: StateT) -> StateT:
    """The state, said to vary over the devices of a ``shard_map`` as the other does.

    What a loop hands on must vary from the start as it does later, but a constant does
    not. The other is never computed: nothing of it is chosen.
    """
    leaves = jax.tree.leaves(other)
    mark = sum(jnp.sum(leaf).astype(jnp.float32) for leaf in leaves)
    return jax.tree.map(
        lambda x: jnp.where(False, jnp.asarray(mark).astype(jnp.result_type(x)), x),
        state,
    )
