"""Fine-tuning on the labelled images: the baseline of Table 2, the start of Table 5."""

import dataclasses
from typing import Any

from jaxtyping import Array, Float

from rdc_jax.core import calibration, prototypes
from rdc_jax.methods.adapt import Apply, Finetuner
from rdc_jax.methods.registry import Settings, register_finetuning
from rdc_jax.methods.supervised import ClassifyFeatures, SupervisedObjective


def _finetuner(
    apply: Apply,
    settings: Settings,
    classifier: ClassifyFeatures | None = None,
    **changes: Any,
) -> Finetuner:
    options = dataclasses.replace(settings.finetune, **changes)
    objective = SupervisedObjective(settings.num_classes, classifier)
    return Finetuner(apply, objective, options, settings.image_size)


@register_finetuning("finetune", title="Fine-tuning", transductive=False)
def finetune(apply: Apply, settings: Settings) -> Finetuner:
    """All layers and a linear head, on the supports (Table 2)."""
    return _finetuner(apply, settings)


@register_finetuning("finetune_linear", title="Linear head", transductive=False)
def finetune_linear(apply: Apply, settings: Settings) -> Finetuner:
    """A linear head on fixed features, on the supports."""
    return _finetuner(apply, settings, layers=("none",), batch_norm="running")


@register_finetuning("npc_l2_da", title="NPC + l2 norm + DA", transductive=False)
def npc_l2_da(apply: Apply, settings: Settings) -> Finetuner:
    """Nearest prototypes after fine-tuning on augmented supports (Table 5)."""

    def classify(support_sd: Array, labels_s: Array, query_qd: Array) -> Array:
        return prototypes.npc(support_sd, labels_s, query_qd, settings.num_classes)

    return _finetuner(apply, settings, classify, augment=True)


@register_finetuning("rdc_da", title="RDC + DA", transductive=True, calibrates=True)
def rdc_da(apply: Apply, settings: Settings) -> Finetuner:
    """RDC after fine-tuning on augmented supports (Table 5)."""

    def classify(
        support_sd: Array, labels_s: Array, query_qd: Array
    ) -> Float[Array, "q c"]:
        return calibration.rdc(
            support_sd, labels_s, query_qd, settings.num_classes, params=settings.rdc
        ).class_distances

    return _finetuner(apply, settings, classify, augment=True)
