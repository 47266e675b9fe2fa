"""A method that adapts, in two phases, with images of the source data set.

First the labelled images move away from images of the source; then those of a class
move together. The nearest prototypes of the fitted features answer.

python run_eval.py --config=configs/eval.py:test --workdir=DIR \
    --config.plugins=docs/extending/adaptation.py --config.source=synthetic:objects \
    --config.methods='npc_l2,away_and_together(away=3;steps=2)' --config.episodes=2
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.rows import l2_normalize
from rdc_jax.methods import Adaptation, GradientAdaptation, Task, register


@dataclasses.dataclass(frozen=True, kw_only=True)
class Away(GradientAdaptation):
    """The first phase: labelled images become unlike those of the source."""

    sees = ("support", "distractors")

    def loss(
        self,
        head_params: Any,
        targets: Any,
        feat_nd: Float[Array, "n d"],
        out: dict[str, Any],
        task: Task,
    ) -> Float[Array, ""]:
        """Mean cosine of a labelled image and one of the source."""
        s = len(task.support_labels)
        unit_nd = l2_normalize(feat_nd)
        return (unit_nd[:s] @ unit_nd[s:].T).mean()


@register("away_and_together")
@dataclasses.dataclass(frozen=True, kw_only=True)
class AwayAndTogether(GradientAdaptation):
    """Labelled images move from the source's, then those of a class together.

    Attributes:
      away: Steps of the first phase; ``steps`` are those of the second.
    """

    title = "Away and together"
    transductive = False
    source_images = 8  # So many distractors come with each step.
    sees = ("support",)

    away: int = 5

    @property
    def phases(self) -> tuple[Adaptation, ...]:
        """The second phase starts from the model that the first one leaves."""
        options = dataclasses.replace(self.finetune, steps=self.away)
        return Away(finetune=options, image_size=self.image_size), self

    def loss(
        self,
        head_params: Any,
        targets: Any,
        feat_nd: Float[Array, "s d"],
        out: dict[str, Any],
        task: Task,
    ) -> Float[Array, ""]:
        """Mean cosine distance of two labelled images of a class."""
        same_ss = task.support_labels[:, None] == task.support_labels[None, :]
        unit_sd = l2_normalize(feat_nd)
        return jnp.where(same_ss, 1 - unit_sd @ unit_sd.T, 0).mean()
