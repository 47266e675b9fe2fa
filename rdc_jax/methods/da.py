"""Fine-tuning on pseudo-samples without its head, for Table 5."""

import dataclasses

from rdc_jax.methods.base import register
from rdc_jax.methods.finetune_ata import FinetuneATA


@register("da")
@dataclasses.dataclass(frozen=True, kw_only=True)
class DA(FinetuneATA):
    """As ``finetune_ata``; then nearest prototypes answer, or ``da(answer=rdc)``.

    One of two readings of the paper's "NPC + l2 norm + DA", which it takes from Yeh et
    al. (2020) without a recipe; the other one is ``lmm_pqs``.
    """

    title = "DA by pseudo-samples"

    answer: str = "npc_l2"
