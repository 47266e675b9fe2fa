"""Soft k-means that starts at the prototypes."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask


@register("soft_kmeans")
@dataclasses.dataclass(frozen=True, kw_only=True)
class SoftKMeans(PreparedMethod):
    """Class means over the supports and the queries' soft memberships, in turns.

    Attributes:
      temperature: Of the memberships, ``softmax(-temperature · d²)``.
      steps: Turns.
    """

    title = "Soft k-means"
    transductive = True

    temperature: float = 5.0
    steps: int = 30

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Squared distances to the last means."""
        s = task.support.shape[0]

        def turn(weight_nc: Array) -> Array:
            logit_qc = -self.temperature * task.squares(weight_nc)[s:]
            return task.weights(task.answers(logit_qc))

        start_nc = task.weights(task.nothing)
        return task.squares(repeat(turn, self.steps, start_nc))[s:]
