"""OpTA: prototypes transported onto the queries (BECLR, Poulakakis-Daktylidis 2024)."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.logistic import logistic_logits
from rdc_jax.core.loops import repeat
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, squared
from rdc_jax.methods.pt_map import even_plan


@register("opta")
@dataclasses.dataclass(frozen=True, kw_only=True)
class OpTA(PreparedMethod):
    """Prototypes become means of the queries that an even plan sends them.

    A linear head that is fitted to them answers.

    Attributes:
      epsilon: Weight of the plan's entropy, of costs whose largest is one.
      passes: Transports; published: 5 for one shot, 1 for five.
      mix: Share of the transported in the new prototypes; published: 0.7 for five.
      scalings: Of the rows and the columns, each pass.
      strength: See ``logistic``.
      steps: Of the head's optimiser.
    """

    title = "OpTA (assumes balance)"
    transductive = True
    assumes_balance = True

    prepare: tuple[str, ...] = ("zscore", "l2")
    epsilon: float = 0.05
    passes: int = 5
    mix: float = 0.7
    scalings: int = 20
    strength: float = 10.0
    steps: int = 50

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """The head's logits, negated."""

        def transport(mean_cd: Array) -> Array:
            cost_qc = squared(task.query, mean_cd)
            largest = jnp.where(counted_qc, cost_qc, 0).max()
            cost_qc = cost_qc / jnp.where(largest > 0, largest, 1)
            plan_qc = even_plan(task, cost_qc, self.epsilon, self.scalings)
            mass_c = plan_qc.sum(axis=0)
            total_cd = jnp.einsum("qc,qd->cd", plan_qc, task.query, precision="highest")
            moved_cd = total_cd / jnp.where(mass_c > 0, mass_c, 1)[:, None]
            return self.mix * moved_cd + (1 - self.mix) * mean_cd

        counted_qc = (task.counts[:, None] > 0) & (task.shots[None, :] > 0)
        mean_cd = repeat(transport, self.passes, task.prototypes)
        one_hot_cc = jnp.diag((task.shots > 0).astype(mean_cd.dtype))
        return -logistic_logits(
            mean_cd, one_hot_cc, task.query, strength=self.strength, steps=self.steps
        )
