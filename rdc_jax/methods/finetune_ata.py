"""Fine-tuning on pseudo-samples, the row of the paper's Table 2."""

import dataclasses

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.data.transforms import pseudo_set, versions_of
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.finetune_guo import FinetuneGuo
from rdc_jax.methods.tuned import State


@register("finetune_ata")
@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneATA(FinetuneGuo):
    """A linear head and all layers, on random versions of the supports.

    The script of Wang and Deng (IJCAI 2021) behind the row that later papers quote as
    Guo's: each epoch draws new versions, and one optimiser moves network and head.

    Attributes:
      pseudo: How many random versions an epoch has, beside the supports themselves.
    """

    title = "Fine-tuning (ATA)"

    epochs: int = 50
    pseudo: int = 75

    def optimiser(self) -> optax.GradientTransformation:
        """The same for network and head."""
        return self.dampened()

    def samples(
        self, key: Key[Array, ""], state: State, task: Task
    ) -> tuple[Float[Array, "m size size 3"], Int[Array, " m"]]:
        """Each support and its versions: 100 images in 5-way 5-shot, 80 in 1-shot."""
        images = self.transformed(state, task.support)
        versions = versions_of(self.pseudo, len(images))
        drawn = pseudo_set(key, images, versions)
        labels_m = jnp.repeat(task.support_labels, versions)
        return drawn.reshape(-1, *images.shape[1:]), labels_m
