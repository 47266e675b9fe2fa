"""RDC+: a linear head and the task's graph, in turns, on evened-out features."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.distances import safe_sqrt
from rdc_jax.core.logistic import logits_by_gram
from rdc_jax.core.loops import repeat
from rdc_jax.core.propagation import neighbour_graph, propagate
from rdc_jax.core.square_root import square_root
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, inner, surprise


@register("rdc_plus")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCPlus(PreparedMethod):
    """A linear head answers, its answers spread over a graph, and it learns from them.

    First the task's main directions are damped: the rows' inner products K become
    ``K^½``, so that a direction of nine times the variance counts three times as much.
    All else sees the cosines of the rows under ``K^½`` alone.

    A turn fits a linear head to the supports and to the queries by what has reached
    them, and spreads its answers and the labels over the nearest-neighbour graph. With
    few supports the queries decide, with many the supports do: a query weighs one over
    the squared number of shots.

    Attributes:
      evened: Take the root of K, not K itself.
      k: Neighbours of a row.
      alpha: Share that a row takes from its neighbours, in [0, 1).
      strength: Of the head's data against its penalty, see ``logistic``.
      temperature: What its logits are multiplied by.
      prior: Weight of its answers against the labels.
      join: Weight of a query in the head, with one shot.
      sharpen: Power of what has reached a query, before it joins the head.
      turns: The last of them answers.
      steps: Of the head's optimiser, each turn.
    """

    title = "RDC+"
    transductive = True

    evened: bool = True
    k: int = 8
    alpha: float = 0.8
    strength: float = 10.0
    temperature: float = 2.0
    prior: float = 0.5
    join: float = 0.5
    sharpen: float = 2.0
    turns: int = 3
    steps: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha >= 1:
            raise ValueError(f"alpha must be below 1, got {self.alpha}")

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Logarithms of what has reached each query, negated."""
        s, n = task.support.shape[0], task.gram.shape[0]
        cosine_nn = _cosines(square_root(task.gram) if self.evened else task.gram)
        graph_nn = neighbour_graph(cosine_nn, task.valid, k=self.k)
        spread_nn = propagate(graph_nn, jnp.eye(n, dtype=graph_nn.dtype), self.alpha)
        weight_1c = self.join / jnp.maximum(task.shots, 1)[None, :] ** 2

        def turn(reached_qc: Array) -> Array:
            joining_qc = weight_1c * _shares(reached_qc**self.sharpen)
            label_nc = jnp.concatenate([task.label, joining_qc])
            logit_qc = logits_by_gram(
                *(cosine_nn, label_nc, cosine_nn[s:]),
                strength=self.strength,
                steps=self.steps,
            )
            prior_qc = self.prior * task.answers(self.temperature * logit_qc)
            start_nc = jnp.concatenate([task.label, prior_qc])
            reached_nc = inner(spread_nn, start_nc.T)
            # A class near the middle of the task would reach everybody.
            return _shares(_shares(reached_nc.T).T[s:])

        return surprise(repeat(turn, self.turns, task.nothing))


def _cosines(gram_nn: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inner products over the rows' lengths; zero for rows that are."""
    length_n = safe_sqrt(jnp.diag(gram_nn))
    scale_n = jnp.where(length_n > 0, 1 / jnp.where(length_n > 0, length_n, 1), 0)
    return scale_n[:, None] * gram_nn * scale_n[None, :]


def _shares(mass_nc: Float[Array, "n c"]) -> Float[Array, "n c"]:
    """Each row over its sum; rows without mass stay zero."""
    total_n1 = mass_nc.sum(axis=1, keepdims=True)
    return mass_nc / jnp.where(total_n1 > 0, total_n1, 1)
