"""Fine-tuning on the labelled images: the baseline of Table 2, the start of Table 5."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from rdc_jax.methods.adapt import on_features
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.gradient import GradientAdaptation


@register("finetune")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Finetune(GradientAdaptation):
    """All layers and a linear head, on the supports (Table 2)."""

    title = "Fine-tuning"
    transductive = False
    sees = ("support",)

    def start(
        self, key: Key[Array, ""], feat_nd: Float[Array, "n d"], task: Task
    ) -> tuple[Any, None]:
        """A head of zeros: all classes are equally likely at first."""
        del key
        kernel_dc = jnp.zeros((feat_nd.shape[1], task.num_classes))
        return {"kernel": kernel_dc, "bias": jnp.zeros(task.num_classes)}, None

    def loss(
        self,
        head_params: Any,
        targets: None,
        feat_nd: Float[Array, "s d"],
        out: dict[str, Any],
        task: Task,
    ) -> Float[Array, ""]:
        """Mean cross-entropy of the head on the supports."""
        del targets, out
        entropies_s = optax.softmax_cross_entropy_with_integer_labels(
            _logits(head_params, feat_nd), task.support_labels
        )
        return entropies_s.mean()

    def by_features(
        self, head_params: Any, feat_nd: Float[Array, "n d"], task: Task
    ) -> Float[Array, "q c"]:
        """Negative logits of the head."""
        return -_logits(head_params, on_features(task, feat_nd).query)


@register("finetune_linear", layers=("none",), batch_norm="running")
class FinetuneLinear(Finetune):
    """A linear head on fixed features, on the supports."""

    title = "Linear head"


@register("npc_l2_da", augment=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class NPCL2DA(Finetune):
    """Nearest prototypes after fine-tuning on augmented supports (Table 5)."""

    title = "NPC + l2 norm + DA"

    answer: str = "npc_l2"  # The head is for training alone.


@register("rdc_da", augment=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCDA(Finetune):
    """RDC after fine-tuning on augmented supports (Table 5)."""

    title = "RDC + DA"

    answer: str = "rdc"


def _logits(params: Any, feat_nd: Float[Array, "n d"]) -> Float[Array, "n c"]:
    return feat_nd @ params["kernel"] + params["bias"]
