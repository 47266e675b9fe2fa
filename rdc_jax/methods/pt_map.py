"""PT-MAP: prototypes moved by optimal transport (Hu et al. 2020)."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.core.sinkhorn import sinkhorn
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, surprise


@register("pt_map")
@dataclasses.dataclass(frozen=True, kw_only=True)
class PTMAP(PreparedMethod):
    """Plans that give every class the same number of queries, and means, in turns.

    Attributes:
      temperature: Of the plan's kernel, ``exp(-temperature · d²)``.
      rate: Share of the way to the new means that a turn goes.
      steps: Turns.
      scalings: Of the rows and the columns, each turn.
    """

    title = "PT-MAP (assumes balance)"
    transductive = True
    assumes_balance = True

    prepare: tuple[str, ...] = ("power", "l2", "centre_apart", "l2")
    temperature: float = 10.0
    rate: float = 0.2
    steps: int = 20
    scalings: int = 20

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Logarithms of the last plan, negated."""
        s = task.support.shape[0]

        def plan(weight_nc: Array) -> Array:
            cost_qc = task.squares(weight_nc)[s:]
            return even_plan(task, cost_qc, 1 / self.temperature, self.scalings)

        def turn(weight_nc: Array) -> Array:
            moved_nc = task.weights(plan(weight_nc))
            return weight_nc + self.rate * (moved_nc - weight_nc)

        start_nc = task.weights(task.nothing)
        return surprise(plan(repeat(turn, self.steps, start_nc)))


def even_plan(
    task: PreparedTask, cost_qc: Float[Array, "q c"], epsilon: float, scalings: int
) -> Float[Array, "q c"]:
    """Send each query to the classes so that all classes get as many."""
    present_c = (task.shots > 0).astype(cost_qc.dtype)
    share_c = present_c * task.counts.sum() / jnp.maximum(present_c.sum(), 1)
    return sinkhorn(cost_qc, task.counts, share_c, epsilon=epsilon, steps=scalings)
