"""protoLP: prototypes and a graph between them, in turns (Zhu and Koniusz 2023)."""

import dataclasses

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.core.propagation import geometric_sum, normalised
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import (
    PreparedMethod,
    PreparedTask,
    inner,
    surprise,
)
from rdc_jax.methods.pt_map import even_plan


@register("proto_lp")
@dataclasses.dataclass(frozen=True, kw_only=True)
class ProtoLP(PreparedMethod):
    """PT-MAP whose plans are smoothed over a graph of the classes that they share.

    Attributes:
      temperature: Of the plan's kernel, ``exp(-temperature · d²)``.
      gamma: Weight of the graph against the supports' labels.
      beta: Share of the smoothed plan in the means.
      rate: Share of the way to the new means that a turn goes.
      steps: Turns.
      scalings: Of the rows and the columns, each plan.
    """

    title = "protoLP (assumes balance)"
    transductive = True
    assumes_balance = True

    temperature: float = 10.0
    gamma: float = 1.0
    beta: float = 0.6
    rate: float = 0.2
    steps: int = 50
    scalings: int = 20

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Logarithms of the last plan, negated."""
        s = task.support.shape[0]

        def plan(weight_nc: Array) -> Array:
            cost_qc = task.squares(weight_nc)[s:]
            return even_plan(task, cost_qc, 1 / self.temperature, self.scalings)

        def turn(weight_nc: Array) -> Array:
            plan_qc = plan(weight_nc)
            smooth_qc = even_plan(
                task, surprise(self._smoothed(task, plan_qc)), 1.0, self.scalings
            )
            both_qc = self.beta * smooth_qc + (1 - self.beta) * plan_qc
            return weight_nc + self.rate * (task.weights(both_qc) - weight_nc)

        start_nc = task.weights(task.nothing)
        return surprise(plan(repeat(turn, self.steps, start_nc)))

    def _smoothed(
        self, task: PreparedTask, plan_qc: Float[Array, "q c"]
    ) -> Float[Array, "q c"]:
        """``P A`` with ``A = (P_sᵀP_s + γL)⁻¹ P_sᵀY``, the anchor graph's solution.

        ``P_sᵀP_s`` is diagonal, the shots, and ``L = I - W`` with W the affinity of
        classes that share rows, normalised. So with ``B`` the shots plus γ, A is
        ``B^-½ (I - γ B^-½ W B^-½)⁻¹ B^-½`` times the shots: a geometric series.
        """
        rows_nc = jnp.concatenate([task.label, plan_qc])
        graph_cc = normalised(inner(rows_nc.T, rows_nc.T))
        root_c = lax.rsqrt(task.shots + self.gamma)
        matrix_cc = self.gamma * root_c[:, None] * graph_cc * root_c[None, :]
        start_cc = jnp.diag(root_c * task.shots)
        rate = self.gamma / (1 + self.gamma)  # With one shot at least.
        solved_cc = root_c[:, None] * geometric_sum(matrix_cc, start_cc, rate)
        return inner(plan_qc, solved_cc.T)
