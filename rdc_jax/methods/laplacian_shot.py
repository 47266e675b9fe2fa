"""Laplacian-regularised prototypes (Ziko et al. 2020)."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.core.propagation import nearest_only
from rdc_jax.core.rows import l2_normalize
from rdc_jax.methods.base import register
from rdc_jax.methods.bd_cspn import rectified_prototypes
from rdc_jax.methods.prepared import (
    PreparedMethod,
    PreparedTask,
    inner,
    squared,
    surprise,
)


@register("laplacian_shot")
@dataclasses.dataclass(frozen=True, kw_only=True)
class LaplacianShot(PreparedMethod):
    """Soft answers that agree with the prototypes and with the nearest queries.

    Attributes:
      knn: Neighbours of a query, itself counted: 3 are two others.
      lam: Weight of the neighbours' answers.
      temperature: Of the squared distances to the prototypes.
      rectify: Use BD-CSPN's prototypes.
      steps: Turns; the published loop stops earlier where it has converged.
    """

    title = "LaplacianShot"
    transductive = True

    knn: int = 3
    lam: float = 0.7
    temperature: float = 1.0
    rectify: bool = False
    steps: int = 20

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Logarithms of the last answers, negated."""
        proto_cd = rectified_prototypes(task, 10.0) if self.rectify else task.prototypes
        unary_qc = -self.temperature * squared(task.query, proto_cd)
        graph_qq = _directed_graph(task, self.knn - 1)

        def turn(answer_qc: Array) -> Array:
            pull_qc = inner(graph_qq, answer_qc.T)
            return task.answers(unary_qc + self.lam * pull_qc)

        return surprise(repeat(turn, self.steps, task.answers(unary_qc)))


def _directed_graph(task: PreparedTask, k: int) -> Float[Array, "q q"]:
    """One where a column is among the k queries most like the row."""
    feat_qd = l2_normalize(task.query)
    q = feat_qd.shape[0]
    other_qq = (task.counts[:, None] * task.counts[None, :] > 0) & ~jnp.eye(
        q, dtype=bool
    )
    similarity_qq = jnp.where(other_qq, 2 + inner(feat_qd, feat_qd), 0)
    return (nearest_only(similarity_qq, k) > 0).astype(feat_qd.dtype)
