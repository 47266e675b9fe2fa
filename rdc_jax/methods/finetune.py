"""Fine-tuning on the labelled images: the baseline of Table 2, the start of Table 5."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core import prototypes
from rdc_jax.core.params import RDCParams
from rdc_jax.methods.adapt import Apply, Finetuner
from rdc_jax.methods.base import Method, Task, register
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.methods.rdc import calibrated, check_neighbours
from rdc_jax.methods.supervised import ClassifyFeatures, SupervisedObjective
from rdc_jax.models.model import Model


@register("finetune")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Finetune(Method):
    """All layers and a linear head, on the supports (Table 2).

    Attributes:
      finetune: How the network is fitted.
    """

    title = "Fine-tuning"
    transductive = False
    inputs = "images"

    finetune: FinetuneOptions = FinetuneOptions()

    def classifier(self, num_classes: int) -> ClassifyFeatures | None:
        """What answers by the fine-tuned features; None: the linear head."""
        del num_classes
        return None

    def finetuner(self, apply: Apply, num_classes: int, image_size: int) -> Finetuner:
        """Make pure functions of one task."""
        classifier = self.classifier(num_classes)
        objective = SupervisedObjective(num_classes, classifier)
        return Finetuner(apply, objective, self.finetune, image_size)


@register("finetune_linear", layers=("none",), batch_norm="running")
class FinetuneLinear(Finetune):
    """A linear head on fixed features, on the supports."""

    title = "Linear head"


@register("npc_l2_da", augment=True)
class NPCL2DA(Finetune):
    """Nearest prototypes after fine-tuning on augmented supports (Table 5)."""

    title = "NPC + l2 norm + DA"

    def classifier(self, num_classes: int) -> ClassifyFeatures:
        """Nearest prototypes."""

        def classify(
            support_sd: Array, labels_s: Array, query_qd: Array
        ) -> Float[Array, "q c"]:
            return prototypes.npc(support_sd, labels_s, query_qd, num_classes)

        return classify


@register("rdc_da", augment=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCDA(NPCL2DA):
    """RDC after fine-tuning on augmented supports (Table 5).

    Attributes:
      rdc: How distances are calibrated.
    """

    title = "RDC + DA"
    transductive = True
    uses_neighbours = True

    rdc: RDCParams = RDCParams()

    def classifier(self, num_classes: int) -> ClassifyFeatures:
        """RDC."""

        def classify(
            support_sd: Array, labels_s: Array, query_qd: Array
        ) -> Float[Array, "q c"]:
            task = Task(support_sd, labels_s, query_qd, num_classes)
            return calibrated(task, self.rdc).class_distances

        return classify

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse neighbourhoods that are the whole task."""
        super().check(task, model)
        check_neighbours(task, self.rdc)
