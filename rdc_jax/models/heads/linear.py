"""Linear maps with torch's first weights, and the classifier of images."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float


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
    return nn.Dense(num_classes, kernel_init=torch_uniform, name=name)


class Linear(nn.Module):
    """``torch.nn.Linear`` with its first weights: bias and kernel are uniform.

    Attributes:
      features: Columns of the result.
      use_bias: Whether there is one; in front of a norm it would change nothing.
    """

    features: int
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: Float[Array, "... i"]) -> Float[Array, "... o"]:
        """Map the last axis."""
        width = x.shape[-1]
        kernel = self.param("kernel", torch_uniform, (width, self.features))
        y = x @ kernel
        if not self.use_bias:
            return y
        bound = width**-0.5  # That of the kernel.
        draw = nn.initializers.uniform(2 * bound)  # From 0 on.
        bias = self.param("bias", lambda *args: draw(*args) - bound, (self.features,))
        return y + bias


def torch_uniform(
    key: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float32
) -> Array:
    """Draw a kernel as torch does: within one over the root of what it sums over."""
    bound = math.prod(shape[:-1]) ** -0.5
    return jax.random.uniform(key, shape, dtype, -bound, bound)
