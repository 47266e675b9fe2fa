"""PADDLE: soft k-means that pays for every class it uses (Martin et al. 2022)."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask


@register("paddle")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Paddle(PreparedMethod):
    """Memberships that favour classes with many members, the opposite of balance.

    Attributes:
      temperature: Of memberships, ``softmax(lam · log share - temperature/2 · d²)``.
      lam: Weight of the logarithm of a class's share of the queries: the paper's λ,
        over the number of queries.
      steps: Turns.
    """

    title = "PADDLE"
    transductive = True

    temperature: float = 30.0
    lam: float = 1.0
    steps: int = 100

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """The last logits, negated."""
        total, s = jnp.maximum(task.counts.sum(), 1), task.support.shape[0]
        tiny = 1e-12  # Of a class without mass.

        def logits(weight_nc: Array, log_share_c: Array) -> Array:
            half_qc = task.squares(weight_nc)[s:] / 2
            return self.lam * log_share_c[None, :] - self.temperature * half_qc

        def turn(state: tuple[Array, Array]) -> tuple[Array, Array]:
            answer_qc = task.answers(logits(*state))
            share_c = answer_qc.sum(axis=0) / total
            return task.weights(answer_qc), jnp.log(share_c + tiny)

        start = (task.weights(task.nothing), jnp.zeros_like(task.shots))
        return -logits(*repeat(turn, self.steps, start))
