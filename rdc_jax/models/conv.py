"""Convolution in the way each backend computes fastest, under one parameter layout."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.cpu import conv as cpu

Implementation = Literal["auto", "xla"]


def conv(
    x_bhwi: Float[Array, "b h w i"],
    kernel_kkio: Float[Array, "k k i o"],
    *,
    stride: int = 1,
    padding: int = 0,
    implementation: Implementation = "auto",
) -> Float[Array, "b h2 w2 o"]:
    """Convolve images with a square kernel and equal padding on the four sides.

    Args:
      x_bhwi: Images, channels last.
      kernel_kkio: The kernel.
      stride: Step in both directions.
      padding: Zeros on each side, as in torch.
      implementation: ``xla`` is ``lax.conv_general_dilated``; ``auto`` is the same on
        accelerators, and on CPU whatever is fastest for the layer.

    Returns:
      The filtered images.

    >>> conv(jnp.ones((1, 4, 4, 3)), jnp.ones((3, 3, 3, 8)), stride=2, padding=1).shape
    (1, 2, 2, 8)
    """
    use_xla = implementation == "xla" or jax.default_backend() != "cpu"
    return (cpu.xla_conv if use_xla else cpu.conv)(x_bhwi, kernel_kkio, stride, padding)


class Conv(nn.Module):
    """Square convolution without bias, padded by half the kernel.

    Its one parameter, ``kernel``, is HWIO whatever the implementation.

    Attributes:
      features: Output channels.
      size: Side of the kernel.
      stride: Step in both directions.
      dtype: Type of the computation; the parameter is float32.
      implementation: See ``conv``.
      kernel_init: Draws it; N(0, 2 / (k * k * out)), as in the lineage's torch code.
    """

    features: int
    size: int
    stride: int = 1
    dtype: Any = jnp.float32
    implementation: Implementation = "auto"
    kernel_init: nn.initializers.Initializer = nn.initializers.variance_scaling(
        2.0, "fan_out", "normal"
    )

    @nn.compact
    def __call__(self, x_bhwi: Float[Array, "b h w i"]) -> Float[Array, "b h2 w2 o"]:
        """Filter a batch of images."""
        shape = (self.size, self.size, x_bhwi.shape[-1], self.features)
        kernel = self.param("kernel", self.kernel_init, shape, jnp.float32)
        return conv(
            x_bhwi.astype(self.dtype),
            kernel.astype(self.dtype),
            stride=self.stride,
            padding=self.size // 2,
            implementation=self.implementation,
        )
