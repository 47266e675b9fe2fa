"""Transductive refinement of LDP-net's test procedure (Zhou et al. 2023)."""

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from rdc_jax.core.logistic import logistic_logits
from rdc_jax.core.loops import repeat
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask


@register("ldp_tr")
@dataclasses.dataclass(frozen=True, kw_only=True)
class LDPTr(PreparedMethod):
    """A linear head that is fitted anew with the queries it was surest about.

    Attributes:
      take: Queries that a class takes in at most, each round anew.
      prototypes: Fit the head to the classes' means, as published for one shot, or to
        every row, as published for five.
      strength: See ``logistic``.
      rounds: Fits after the first.
      steps: Of the optimiser, each fit.
    """

    title = "LDP-Tr"
    transductive = True

    prepare: tuple[str, ...] = ("power", "l2")
    take: int = 10
    prototypes: bool = True
    strength: float = 10.0
    rounds: int = 7
    steps: int = 50

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """The last head's logits, negated."""

        def fitted(taken_qc: Array) -> Array:
            rows, labels = task.rows, jnp.concatenate([task.label, taken_qc])
            if self.prototypes:
                rows, labels = task.means(taken_qc), _classes(task)
            return logistic_logits(
                rows, labels, task.query, strength=self.strength, steps=self.steps
            )

        def round_(logit_qc: Array) -> Array:
            answer_qc = jax.nn.softmax(logit_qc, axis=1) * task.counts[:, None]
            return fitted(_surest(answer_qc, self.take))

        nothing_qc = jnp.zeros((task.query.shape[0], task.label.shape[1]))
        first_qc = fitted(nothing_qc.astype(task.label.dtype))
        return -repeat(round_, self.rounds, first_qc)


def _classes(task: PreparedTask) -> Float[Array, "c c"]:
    """One-hot labels of the class means; zero for a class without supports."""
    return jnp.diag((task.shots > 0).astype(task.label.dtype))


def _surest(answer_qc: Float[Array, "q c"], take: int) -> Float[Array, "q c"]:
    """One for the queries that a class is the answer to, if among its surest."""
    q, c = answer_qc.shape
    own_qc = jax.nn.one_hot(answer_qc.argmax(axis=1), c, dtype=answer_qc.dtype)
    score_cq = (own_qc * answer_qc).T
    if take < q:
        _, best_ct = lax.top_k(score_cq, take)
        best_cq = (best_ct[:, :, None] == jnp.arange(q, dtype=best_ct.dtype)).any(
            axis=1
        )
        score_cq = jnp.where(best_cq, score_cq, 0)
    return (score_cq.T > 0).astype(answer_qc.dtype)
