"""Transductive information maximisation (Boudiaf et al. 2020)."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.methods.base import register
from rdc_jax.methods.information import descend, information_loss, log_answers
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, squared

_SOLVERS = ("adm", "gradient")


@register("tim")
@dataclasses.dataclass(frozen=True, kw_only=True)
class TIM(PreparedMethod):
    """Prototypes that make the answers sure, and all classes as frequent.

    The loss is ``fit · cross-entropy of the supports - even · H(mean answer) + sure ·
    mean H(answer)``, the answers ``softmax(-temperature/2 · d²)``. Its second term is
    largest when all classes have as many queries.

    Attributes:
      solver: ``adm``: the paper's alternating directions, closed updates; or
        ``gradient``: Adam on the prototypes.
      temperature: Of the answers.
      fit: Weight of the supports.
      even: Weight of the entropy of the mean answer.
      sure: Weight of the entropy of the answers.
      steps: Number of solver steps.
      rate: Of Adam; published as 1e-4 for 150 to 1,000 steps.
    """

    title = "TIM (assumes balance)"
    transductive = True
    assumes_balance = True

    solver: str = "adm"
    temperature: float = 15.0
    fit: float = 0.1
    even: float = 1.0
    sure: float = 0.1
    steps: int = 50
    rate: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver not in _SOLVERS:
            raise ValueError(f"solver must be adm or gradient, got {self.solver!r}")

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Squared distances to the prototypes that the solver ends at."""
        if self.solver == "adm":

            def turn(weight_nc: Array) -> Array:
                return self._turn(task, weight_nc)

            weight_nc = repeat(turn, self.steps, task.weights(task.nothing))
            return task.squares(weight_nc)[task.support.shape[0] :]

        def loss(mean_cd: Array) -> Array:
            return information_loss(
                task,
                log_answers(task, task.support, mean_cd, self.temperature),
                log_answers(task, task.query, mean_cd, self.temperature),
                weights=(self.fit, self.even, self.sure),
            )

        mean_cd = descend(loss, task.prototypes, steps=self.steps, rate=self.rate)
        return squared(task.query, mean_cd)

    def _turn(self, task: PreparedTask, weight_nc: Array) -> Float[Array, "n c"]:
        """Auxiliary answers from the answers, then prototypes from both (Eq. 8-9)."""
        s = task.support.shape[0]
        logit_nc = -self.temperature / 2 * task.squares(weight_nc)
        answer_nc = jax.nn.softmax(task.possible(logit_nc), axis=1)
        answer_sc = answer_nc[:s] * task.label.sum(axis=1, keepdims=True)
        answer_qc = answer_nc[s:] * task.counts[:, None]
        sharp_qc = answer_qc ** (1 + self.sure)
        mass_c = sharp_qc.sum(axis=0)
        share = self.even / (1 + self.even)
        aim_qc = sharp_qc / jnp.where(mass_c > 0, mass_c, 1) ** share
        total_q1 = aim_qc.sum(axis=1, keepdims=True)
        aim_qc = aim_qc / jnp.where(total_q1 > 0, total_q1, 1)
        # Supports and queries count by their means.
        shots = jnp.maximum(task.shots.sum(), 1)
        queries = jnp.maximum(task.counts.sum(), 1)
        from_s = self.fit / (1 + self.sure) / shots
        from_q = 1 / queries
        slack_sc = from_s * (task.label - answer_sc)
        slack_qc = from_q * (aim_qc - answer_qc)
        held_c = from_s * answer_sc.sum(axis=0) + from_q * answer_qc.sum(axis=0)
        total_nc = jnp.concatenate([slack_sc, slack_qc]) + held_c[None, :] * weight_nc
        mass_c = from_s * task.shots + from_q * aim_qc.sum(axis=0)
        return total_nc / jnp.where(mass_c > 0, mass_c, 1)[None, :]
