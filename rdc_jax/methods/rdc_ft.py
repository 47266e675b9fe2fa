"""RDC-FT: the network is fine-tuned on each task towards its calibrated distances."""

import dataclasses
from typing import ClassVar

from rdc_jax.core.params import RDCParams
from rdc_jax.methods.adapt import Apply, Finetuner
from rdc_jax.methods.base import Method, Task, register
from rdc_jax.methods.calibration import CalibrationObjective, Loss
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.methods.rdc import check_neighbours
from rdc_jax.models.model import Model


@register("rdc_ft")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCFT(Method):
    """Algorithm 1: the KL loss with attention, calibrated in both spaces.

    Attributes:
      rdc: How distances are calibrated.
      finetune: How the network is fitted.
    """

    title = "RDC-FT"
    transductive = True
    inputs = "images"
    uses_neighbours = True
    loss: ClassVar[Loss] = "kl"

    rdc: RDCParams = RDCParams()
    finetune: FinetuneOptions = FinetuneOptions()

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse neighbourhoods that are the whole task."""
        super().check(task, model)
        check_neighbours(task, self.rdc)

    def finetuner(self, apply: Apply, num_classes: int, image_size: int) -> Finetuner:
        """Make pure functions of one task."""
        objective = CalibrationObjective(
            num_classes, self.rdc, self.finetune, self.loss
        )
        return Finetuner(apply, objective, self.finetune, image_size)


@register("rdc_ft_one_space", subspace="none")
class RDCFTOneSpace(RDCFT):
    """Algorithm 1, calibrated in the original space alone (Table 3)."""

    title = "RDC-FT w/o subspace"


@register("rdc_ft_kl", alpha=0.0)
class RDCFTKL(RDCFT):
    """The KL loss without attention (Figure 3)."""

    title = "RDC-FT, KL"


@register("rdc_ft_mse", alpha=0.0)
class RDCFTMSE(RDCFT):
    """Mean squared differences of distances, without attention (Figure 3)."""

    title = "RDC-FT, MSE"
    loss = "mse"
