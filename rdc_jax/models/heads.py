"""Heads and decoders: what is trained on top of a backbone."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.runtime.registry import Registry


class Classifier(nn.Module):
    """A backbone and a linear classifier on its features.

    Variables are ``{"params": {"backbone", "head"}, "batch_stats": {"backbone"}}``.

    Attributes:
      backbone: A module that returns ``(features, out)``.
      num_classes: Number of logits.
    """

    backbone: nn.Module
    num_classes: int

    @nn.compact
    def __call__(
        self, images: Float[Array, "b h w 3"], *, train: bool = False
    ) -> tuple[Float[Array, "b c"], dict[str, Any]]:
        """Compute logits.

        Args:
          images: Normalised images.
          train: Normalise by the batch's statistics.

        Returns:
          Float32 logits, and the backbone's intermediates with ``logits`` added.
        """
        features, out = self.backbone(images, train=train)
        logits = linear(self.num_classes, name="head")(features)
        return logits, {**out, "logits": logits}


def linear(num_classes: int, name: str | None = None) -> nn.Dense:
    """Make a linear classifier of features."""
    # torch's nn.Linear; the lineage sets the bias to 0.
    return nn.Dense(num_classes, kernel_init=_torch_linear, name=name)


HEADS: Registry[nn.Module] = Registry("head", linear=linear)
"""Networks on top of features; made with the ``head_options`` of a checkpoint."""

DECODERS: Registry[nn.Module] = Registry("decoder")
"""What makes images of features; made with the ``decoder_options``."""


def _torch_linear(
    key: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float32
) -> Array:
    bound = shape[0] ** -0.5
    return jax.random.uniform(key, shape, dtype, -bound, bound)
