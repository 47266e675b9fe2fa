"""BSR (Liu et al., CVPR workshop 2020): fine-tuning after regularised training."""

import dataclasses

from rdc_jax.methods.base import register
from rdc_jax.methods.finetune_guo import FinetuneGuo


@register("bsr")
@dataclasses.dataclass(frozen=True, kw_only=True)
class BSR(FinetuneGuo):
    """``finetune_guo``, on a network trained with batch spectral regularisation."""

    title = "BSR"
    trained_by = ("bsr",)
