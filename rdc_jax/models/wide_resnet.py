"""The wide residual network of the few-shot field, as Flax linen modules."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.conv import Conv, Implementation
from rdc_jax.models.norm import BatchNorm


class PreactivatedBlock(nn.Module):
    """Two 3x3 convolutions, each after a batch norm, and a shortcut.

    Attributes:
      features: Output channels.
      stride: Of the first convolution and of the shortcut.
      dtype: Of the computation.
      conv: Implementation of the convolutions.
      norm: Before each convolution.
    """

    features: int
    stride: int = 1
    dtype: Any = jnp.float32
    conv: Implementation = "auto"
    norm: Callable[..., nn.Module] = BatchNorm

    @nn.compact
    def __call__(
        self, x: Float[Array, "b h w i"], *, train: bool
    ) -> Float[Array, "b h2 w2 o"]:
        """Apply the block."""
        conv = functools.partial(Conv, dtype=self.dtype, implementation=self.conv)
        norm = functools.partial(self.norm, dtype=self.dtype)
        y = nn.relu(norm(name="norm1")(x, train=train))
        if x.shape[-1] != self.features:  # The shortcut begins after the norm.
            x = conv(self.features, 1, self.stride, name="shortcut_conv")(y)
        y = conv(self.features, 3, self.stride, name="conv1")(y)
        y = nn.relu(norm(name="norm2")(y, train=train))
        return x + conv(self.features, 3, name="conv2")(y)


class WideResNet(nn.Module):
    """WRN-28-10 of Zagoruyko and Komodakis, 2016, as S2M2 has it: 640 features.

    Attributes:
      depth: Layers: four, and six for each block of a stage.
      widen: Times 16, 32 and 64 channels.
      dtype: Of the computation; parameters and BN statistics are float32.
      conv: Implementation of the convolutions: ``auto`` or ``xla``.
      norm: Of the blocks, and after the last one.
      start: How many of ``stages`` to leave out, see ``Model.after``.
    """

    depth: int = 28
    widen: int = 10
    dtype: Any = jnp.float32
    conv: Implementation = "auto"
    norm: Callable[..., nn.Module] = BatchNorm
    start: int = 0

    @property
    def stages(self) -> tuple[str, ...]:
        """As of ``ResNet``."""
        return ("stem", *(f"block{i + 1}" for i in range((self.depth - 4) // 6 * 3)))

    @nn.compact
    def __call__(
        self, images: Float[Array, "b h w c"], *, train: bool = False
    ) -> tuple[Float[Array, "b d"], dict[str, Any]]:
        """Compute features, and intermediates as ``ResNet`` does."""
        x, out = images.astype(self.dtype), {}
        if not self.start:
            x = Conv(16, 3, 1, self.dtype, self.conv, name="stem_conv")(x)
            out["stem"] = x
        for i, name in list(enumerate(self.stages[1:]))[max(self.start - 1, 0) :]:
            stage, repeat = divmod(i, (self.depth - 4) // 6)
            block = PreactivatedBlock(
                16 * 2**stage * self.widen,
                2 if stage and not repeat else 1,
                self.dtype,
                self.conv,
                self.norm,
                name=name,
            )
            out[name] = x = block(x, train=train)
        x = nn.relu(self.norm(dtype=self.dtype, name="norm")(x, train=train))
        out["features"] = x.astype(jnp.float32).mean((1, 2))
        return out["features"], out
