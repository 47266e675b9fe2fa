"""Nearest prototypes after the task's centroid is projected out (Xu et al. 2022)."""

import dataclasses

from rdc_jax.methods.base import register
from rdc_jax.methods.npc_prepared import PreparedNPC


@register("tcpr")
@dataclasses.dataclass(frozen=True, kw_only=True)
class TCPR(PreparedNPC):
    """Task centroid projection removal: rows lose what they share with their mean.

    The published centroid is of base-class features where those are at hand; here it is
    of the task's own rows, the paper's transductive case.
    """

    title = "TCPR"
    transductive = True

    prepare: tuple[str, ...] = ("l2", "uncentroid", "l2")
