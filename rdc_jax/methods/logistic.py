"""A linear head on the supports' features, fitted to each task."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core.logistic import logistic_logits
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask


@register("logistic")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Logistic(PreparedMethod):
    """Logistic regression with an l2 penalty, each query by itself.

    Attributes:
      prepare: Steps of ``rdc_jax.prepare``; ``centre`` and ``bpa`` look at the queries.
      strength: Weight of the supports against the penalty, scikit-learn's ``C``.
      steps: Number of optimiser steps.
    """

    title = "Logistic regression"
    transductive = False

    prepare: tuple[str, ...] = ("power", "l2")
    strength: float = 10.0
    steps: int = 100

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """The head's logits, negated."""
        return -logistic_logits(
            task.support,
            task.label,
            task.query,
            strength=self.strength,
            steps=self.steps,
        )
