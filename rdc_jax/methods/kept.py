"""Which of the weights that a task's steps pass through are kept for the answer."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

PyTree = Any


class Kept(NamedTuple):
    """Weights and statistics that will answer.

    Attributes:
      score: Of ``best``, the lowest loss; of ``mean``, how many steps it is over.
      weights: Of the network, of what sits on it, and running statistics.
    """

    score: Float[Array, ""]
    weights: PyTree


def first(keep: str, weights: PyTree) -> Kept | None:
    """Before the first step; None: what the last step leaves answers."""
    if keep == "last":
        return None
    return Kept(jnp.float32(jnp.inf if keep == "best" else 0), weights)


def following(
    keep: str,
    kept: Kept | None,
    value: Float[Array, ""],
    before: PyTree,
    after: PyTree,
) -> Kept | None:
    """After one more step.

    Args:
      keep: ``last``, ``best`` or ``mean``.
      kept: Until then.
      value: The loss, of the weights before the step.
      before: The weights that it left.
      after: Those that it made.
    """
    if kept is None:
        return None
    if keep == "best":
        better = value < kept.score
        weights = jax.tree.map(
            lambda old, new: jnp.where(better, new, old), kept.weights, before
        )
        return Kept(jnp.where(better, value, kept.score), weights)
    count = kept.score + 1
    weights = jax.tree.map(
        lambda old, new: old + (new - old) / count, kept.weights, after
    )
    return Kept(count, weights)
