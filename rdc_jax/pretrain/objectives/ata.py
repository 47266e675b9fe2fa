"""Adversarial task augmentation: training on the hardest tasks near a given one.

Wang and Deng, "Cross-Domain Few-Shot Classification via Adversarial Task
Augmentation", IJCAI 2021, as its published code has it.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdc_jax.models.conv import conv
from rdc_jax.models.model import Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime.config_values import at_least
from rdc_jax.runtime.errors import UserError

# Edges of the random filters; each is as likely.
_SIZES = (1, 3, 5, 7, 11, 15)
_REFERENCE_SIZE = 224
_FILTER = 2**32 - 1  # Folded into the key.


@dataclasses.dataclass(frozen=True)
class TaskAugmentation(base.Wrapper):
    """Another objective's loss, on images that were moved to raise it.

    All images of a task go through one random filter or stay as they are, then ascend
    by the gradient of the loss in eval mode, without sign, projection or clipping. The
    ascent itself is not differentiated.

    Attributes:
      steps: Of the ascent, T_max in the paper.
      step_size: Of the ascent, beta in the paper.
      keep: How often the images stay as they are; ``prob`` in the authors' code.
      scaled: ``step_size`` is for images of 224 pixels. The gradient of one pixel falls
        with their number, so for other sizes it is multiplied by (size / 224)^2.
    """

    steps: int = 5
    step_size: float = 80.0
    keep: float = 0.5
    scaled: bool = True

    # The loss before the ascent, and the root mean square of what it adds to a pixel.
    own_metrics: ClassVar[tuple[str, ...]] = ("start_loss", "moved")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("method, ata(steps)", self.steps, 0)
        if not 0 <= self.keep <= 1:
            raise UserError(f"ata(keep={self.keep}): give a share from 0 to 1")

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Move the images, then compute the other objective's loss."""
        # The other objective's own draws are those it would make alone.
        key_filter = jax.random.fold_in(key, _FILTER)
        start = random_filter(key_filter, batch.images, keep=self.keep)
        batch = batch._replace(images=start)
        images, start_loss = self._ascend(variables, batch, key)
        batch = batch._replace(images=images)
        loss, aux = self.inner.loss(variables, batch, key, train=train)
        moved = jnp.sqrt(jnp.mean(jnp.square(images - start)))
        own = {"start_loss": start_loss, "moved": moved}
        return loss, aux._replace(metrics=aux.metrics | own)

    def _ascend(
        self, variables: Variables, batch: base.Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, "b h w 3"], Float[Array, ""]]:
        """Give the images after the ascent, and the loss before it."""
        # Constants, so that no gradient of the weights is prepared in the ascent.
        variables, batch = jax.lax.stop_gradient((variables, batch))

        def loss_of(images: Array) -> Array:
            moved = batch._replace(images=images)
            return self.inner.loss(variables, moved, key, train=False)[0]

        images, losses = batch.images, []
        rate = self.step_size
        if self.scaled:
            rate *= (images.shape[1] / _REFERENCE_SIZE) ** 2
        # A Python loop: XLA on CPU runs convolutions inside of its loops on one core.
        for _ in range(self.steps):
            loss, ascent = jax.value_and_grad(loss_of)(images)
            images = images + rate * ascent
            losses.append(loss)
        return images, losses[0] if losses else loss_of(images)


def random_filter(
    key: PRNGKeyArray, images: Float[Array, "b h w 3"], *, keep: float
) -> Float[Array, "b h w 3"]:
    """Filter all images by one random convolution of random size, or leave them.

    Args:
      key: Random key for the choices.
      images: Normalised images.
      keep: How often they are left as they are.
    """
    key_keep, key_size, key_kernel = jax.random.split(key, 3)
    largest = max(_SIZES)
    size = jax.random.choice(key_size, jnp.array(_SIZES))
    # Smaller kernels are the middle of the largest one: no shape depends on the draw.
    inside_k = 2 * jnp.abs(jnp.arange(largest) - largest // 2) < size
    inside_kk = inside_k[:, None] & inside_k
    # Xavier's normal, with k * k * 3 inputs and as many outputs.
    kernel_kkio = jax.random.normal(key_kernel, (largest, largest, 3, 3))
    kernel_kkio *= inside_kk[..., None, None] / (jnp.sqrt(3.0) * size)
    filtered = conv(images, kernel_kkio.astype(images.dtype), padding=largest // 2)
    return jnp.where(jax.random.uniform(key_keep) < keep, images, filtered)


@base.register("ata")
def ata(
    options: Options,
    num_classes: int,
    *,
    inner: str = "protonet",
    steps: int = 5,
    step_size: float = 80.0,
    keep: float = 0.5,
    scaled: bool = True,
) -> TaskAugmentation:
    """Adversarial task augmentation around an objective (Wang and Deng 2021)."""
    made = base.get_objective(inner)(options, num_classes)
    return TaskAugmentation(made, steps, step_size, keep, scaled)
