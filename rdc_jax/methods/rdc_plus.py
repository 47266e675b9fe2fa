"""RDC+: class means and labels, spread over the task's graph in turns."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.core.propagation import cosine_graph, propagate
from rdc_jax.core.rows import l2_normalize
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import (
    PreparedMethod,
    PreparedTask,
    inner,
    squared,
    surprise,
)


@register("rdc_plus")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCPlus(PreparedMethod):
    """Answers of the class means are a prior for what labels tell their neighbours.

    A turn makes the queries' answers from the class means, spreads them and the labels
    over the nearest-neighbour graph, and takes the queries into the means by what has
    reached them. With few supports the graph and the queries decide, with many the
    supports do: in a mean a query counts one over the squared number of shots.

    Attributes:
      k: Neighbours of a row.
      alpha: Share that a row takes from its neighbours, in [0, 1).
      temperature: Of the means' answers, ``softmax(-temperature · d²)``.
      prior: Weight of these answers against the labels.
      sharpen: Power of what has reached a query, before it joins the means.
      turns: The last of them answers.
    """

    title = "RDC+"
    transductive = True

    k: int = 10
    alpha: float = 0.8
    temperature: float = 5.0
    prior: float = 0.3
    sharpen: float = 2.0
    turns: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha >= 1:
            raise ValueError(f"alpha must be below 1, got {self.alpha}")

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Logarithms of what has reached each query, negated."""
        s, n = task.support.shape[0], task.rows.shape[0]
        graph_nn = cosine_graph(l2_normalize(task.rows), task.valid, k=self.k)
        spread_nn = propagate(graph_nn, jnp.eye(n, dtype=graph_nn.dtype), self.alpha)

        def turn(reached_qc: Array) -> Array:
            joining_qc = _shares(reached_qc**self.sharpen) / shots_1c**2
            mean_cd = task.means(joining_qc)
            logit_qc = -self.temperature * squared(task.query, mean_cd)
            prior_qc = self.prior * task.answers(logit_qc)
            start_nc = jnp.concatenate([task.label, prior_qc])
            reached_nc = inner(spread_nn, start_nc.T)
            # A class near the middle of the task would reach everybody.
            return _shares(_shares(reached_nc.T).T[s:])

        shots_1c = jnp.maximum(task.shots, 1)[None, :]
        nothing_qc = jnp.zeros((n - s, shots_1c.shape[1]), graph_nn.dtype)
        return surprise(repeat(turn, self.turns, nothing_qc))


def _shares(mass_nc: Float[Array, "n c"]) -> Float[Array, "n c"]:
    """Each row over its sum; rows without mass stay zero."""
    total_n1 = mass_nc.sum(axis=1, keepdims=True)
    return mass_nc / jnp.where(total_n1 > 0, total_n1, 1)
