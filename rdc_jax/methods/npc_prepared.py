"""Nearest prototypes of prepared features, what every other method must beat."""

import dataclasses

from rdc_jax.core.preparation import DEFAULT_STEPS
from rdc_jax.methods.base import register
from rdc_jax.methods.npc import NPC


@register("npc_prepared")
@dataclasses.dataclass(frozen=True, kw_only=True)
class PreparedNPC(NPC):
    """Distances to the class means of the prepared features.

    ``prepare=l2+bpa`` takes the rows of the balanced pairwise affinity for features
    (Shalam and Korman 2024).
    """

    title = "NPC, prepared"
    transductive = True

    prepare: tuple[str, ...] = DEFAULT_STEPS
