"""Alpha-TIM: information maximisation for queries in any proportion (Veilleux 2021)."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.methods.base import register
from rdc_jax.methods.information import descend, information_loss, log_answers
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, squared


@register("alpha_tim")
@dataclasses.dataclass(frozen=True, kw_only=True)
class AlphaTIM(PreparedMethod):
    """TIM by gradient with Tsallis entropies, which bear uneven classes.

    Attributes:
      alpha: Order of the entropies; published: 2 for one shot, 7 from five shots on.
      temperature: Of the answers.
      fit: Weight of the supports.
      even: Weight of the entropy of the mean answer.
      sure: Weight of the entropy of the answers.
      steps: Of Adam on the prototypes.
      rate: Of Adam; published as 1e-4 for 1,000 steps.
    """

    title = "Alpha-TIM"
    transductive = True

    alpha: float = 2.0
    temperature: float = 15.0
    fit: float = 1.0
    even: float = 1.0
    sure: float = 1.0
    steps: int = 50
    rate: float = 1e-3

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Squared distances to the prototypes that the loss ends at."""

        def loss(mean_cd: Array) -> Array:
            return information_loss(
                task,
                log_answers(task, task.support, mean_cd, self.temperature),
                log_answers(task, task.query, mean_cd, self.temperature),
                weights=(self.fit, self.even, self.sure),
                order=self.alpha,
            )

        mean_cd = descend(loss, task.prototypes, steps=self.steps, rate=self.rate)
        return squared(task.query, mean_cd)
