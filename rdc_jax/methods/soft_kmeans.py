"""Soft k-means that starts at the prototypes."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, squared


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

        def turn(mean_cd: Array) -> Array:
            logit_qc = -self.temperature * squared(task.query, mean_cd)
            return task.means(task.answers(logit_qc))

        mean_cd = repeat(turn, self.steps, task.prototypes)
        return squared(task.query, mean_cd)
