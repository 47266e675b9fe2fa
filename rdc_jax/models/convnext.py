"""ConvNeXt (Liu et al., 2022), as Flax linen modules."""

import functools
from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.conv import Implementation

_normal = nn.initializers.truncated_normal(0.02)


class ConvNeXtBlock(nn.Module):
    """A depthwise 7x7 convolution and an MLP of each pixel, scaled and added.

    Attributes:
      layer_scale: Whether what is added is first scaled, channel by channel.
      dtype: Of the computation.
    """

    layer_scale: bool = True
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Float[Array, "b h w c"]) -> Float[Array, "b h w c"]:
        """Apply the block."""
        width = x.shape[-1]
        dense = functools.partial(nn.Dense, dtype=self.dtype, kernel_init=_normal)
        y = _conv(self, width, 7, 1, "conv", feature_group_count=width)(x)
        y = dense(4 * width, name="up")(_norm(self, "norm")(y))
        y = dense(width, name="down")(nn.gelu(y, approximate=False))
        if self.layer_scale:
            scale = self.param("scale", nn.initializers.constant(1e-6), (width,))
            y = y * scale.astype(self.dtype)
        return x + y


class ConvNeXt(nn.Module):
    """Patches, four stages of blocks, and the normalised global average.

    Attributes:
      depths: Blocks of each stage; all stages but the first begin by halving.
      widths: Channels of each stage.
      layer_scale: See ``ConvNeXtBlock``.
      epsilon: Of the last normalisation.
      dtype: Of the computation; parameters are float32.
      conv: Taken for the sake of other backbones.
    """

    depths: tuple[int, ...] = (3, 3, 9, 3)
    widths: tuple[int, ...] = (96, 192, 384, 768)
    layer_scale: bool = True
    epsilon: float = 1e-6
    dtype: Any = jnp.float32
    conv: Implementation = "auto"

    @nn.compact
    def __call__(
        self, images: Float[Array, "b h w 3"], *, train: bool = False
    ) -> tuple[Float[Array, "b d"], dict[str, Any]]:
        """Compute features, and intermediates as ``ResNet`` does."""
        del train
        x = _conv(self, self.widths[0], 4, 4, "stem_conv")(images.astype(self.dtype))
        x = _norm(self, "stem_norm")(x)
        out: dict[str, Any] = {"stem": x}
        number = 0
        for stage, (depth, width) in enumerate(
            zip(self.depths, self.widths, strict=True)
        ):
            if stage:
                x = _norm(self, f"halve{stage}_norm")(x)
                x = _conv(self, width, 2, 2, f"halve{stage}_conv")(x)
            for _ in range(depth):
                number += 1
                name = f"block{number}"
                block = ConvNeXtBlock(self.layer_scale, self.dtype, name=name)
                out[name] = x = block(x)
        pooled = x.astype(jnp.float32).mean((1, 2)).astype(self.dtype)
        norm = nn.LayerNorm(
            self.epsilon, dtype=self.dtype, use_fast_variance=False, name="norm"
        )
        out["features"] = norm(pooled).astype(jnp.float32)
        return out["features"], out


def _norm(module: Any, name: str) -> nn.LayerNorm:
    return nn.LayerNorm(1e-6, dtype=module.dtype, use_fast_variance=False, name=name)


def _conv(
    module: Any, features: int, size: int, stride: int, name: str, **options: Any
) -> nn.Conv:
    """A convolution with a bias; of patches where it strides."""
    return nn.Conv(
        features,
        (size, size),
        stride,
        padding=0 if stride > 1 else size // 2,
        dtype=module.dtype,
        kernel_init=_normal,
        name=name,
        **options,
    )


ConvNeXtTiny = functools.partial(ConvNeXt)
"""ConvNeXt-T: 768 features."""
