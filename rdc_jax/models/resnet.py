"""The residual networks of the few-shot field, as Flax linen modules."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.conv import Conv, Implementation
from rdc_jax.models.cpu.pool import max_pool
from rdc_jax.models.norm import BatchNorm

Norm = Callable[..., nn.Module]
"""Called with ``dtype`` and ``name``; the module is called as ``norm(x, train=…)``."""


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut.

    The shortcut is the identity where the channels stay the same, else a 1x1
    convolution and a batch norm.

    Attributes:
      features: Output channels.
      stride: Step of the first convolution and of the shortcut.
      dtype: Type of the computation; parameters are float32.
      conv: Implementation of the convolutions.
      norm: Follows each convolution.
      last_norm: Follows the second convolution and the shortcut's instead, whose sum
        leaves the block; ``norm`` if None.
    """

    features: int
    stride: int = 1
    dtype: Any = jnp.float32
    conv: Implementation = "auto"
    norm: Norm = BatchNorm
    last_norm: Norm | None = None

    @nn.compact
    def __call__(
        self, x: Float[Array, "b h w i"], *, train: bool
    ) -> Float[Array, "b h2 w2 o"]:
        """Apply the block."""
        conv = functools.partial(Conv, dtype=self.dtype, implementation=self.conv)
        last_norm = functools.partial(self.last_norm or self.norm, dtype=self.dtype)
        y = conv(self.features, 3, self.stride, name="conv1")(x)
        y = nn.relu(self.norm(dtype=self.dtype, name="norm1")(y, train=train))
        y = conv(self.features, 3, name="conv2")(y)
        y = last_norm(name="norm2")(y, train=train)
        if x.shape[-1] != self.features:
            x = conv(self.features, 1, self.stride, name="shortcut_conv")(x)
            x = last_norm(name="shortcut_norm")(x, train=train)
        return nn.relu(x + y)


class PoolingBlock(nn.Module):
    """ResNet12's block: three 3x3 convolutions, a 1x1 shortcut, a 2x2 max-pool.

    Attributes:
      features: Output channels.
      dtype: Type of the computation; parameters are float32.
      conv: Implementation of the convolutions.
      slope: Slope of the leaky ReLU below zero.
      norm: As in ``BasicBlock``.
      last_norm: As in ``BasicBlock``, after the third convolution.
    """

    features: int
    dtype: Any = jnp.float32
    conv: Implementation = "auto"
    slope: float = 0.1
    norm: Norm = BatchNorm
    last_norm: Norm | None = None

    @nn.compact
    def __call__(
        self, x: Float[Array, "b h w i"], *, train: bool
    ) -> Float[Array, "b h2 w2 o"]:
        """Apply the block."""
        conv = functools.partial(Conv, dtype=self.dtype, implementation=self.conv)
        last_norm = functools.partial(self.last_norm or self.norm, dtype=self.dtype)
        y = x
        for i in (1, 2):
            y = conv(self.features, 3, name=f"conv{i}")(y)
            y = self.norm(dtype=self.dtype, name=f"norm{i}")(y, train=train)
            y = nn.leaky_relu(y, self.slope)
        y = conv(self.features, 3, name="conv3")(y)
        y = last_norm(name="norm3")(y, train=train)
        x = conv(self.features, 1, name="shortcut_conv")(x)
        x = last_norm(name="shortcut_norm")(x, train=train)
        return max_pool(nn.leaky_relu(x + y, self.slope), size=2, stride=2)


class ResNet(nn.Module):
    """A stem, blocks in a row, and the global average.

    Attributes:
      blocks: One constructor a block; called with the fields ``dtype`` to
        ``last_norm`` and ``name``.
      stem: Whether to begin with the 7x7 stride-2 convolution and 3x3 max-pool.
      dtype: Type of the computation; parameters and BN statistics are float32.
      conv: Implementation of the convolutions: ``auto`` or ``xla``.
      norm: Norm of the stem and the blocks, see ``BasicBlock``. One that draws random
        numbers in training takes them from the stream ``noise``:
        ``apply(..., train=True, rngs={"noise": key})``.
      last_norm: The last norm of each block, see ``BasicBlock``.
    """

    blocks: tuple[Callable[..., nn.Module], ...]
    stem: bool = True
    dtype: Any = jnp.float32
    conv: Implementation = "auto"
    norm: Norm = BatchNorm
    last_norm: Norm | None = None

    @nn.compact
    def __call__(
        self, images: Float[Array, "b h w 3"], *, train: bool = False
    ) -> tuple[Float[Array, "b d"], dict[str, Any]]:
        """Compute features.

        Args:
          images: Normalised images of any size.
          train: Normalise by the batch's statistics (see ``BatchNorm``).

        Returns:
          Float32 features, and a dict of the intermediates ``stem``, ``block1``, ...
          and ``features``.
        """
        out = {}
        x = images.astype(self.dtype)
        if self.stem:
            x = Conv(64, 7, 2, self.dtype, self.conv, name="stem_conv")(x)
            x = self.norm(dtype=self.dtype, name="stem_norm")(x, train=train)
            x = max_pool(nn.relu(x), size=3, stride=2, padding=1)
            out["stem"] = x
        for i, block in enumerate(self.blocks, 1):
            name = f"block{i}"
            made = block(
                dtype=self.dtype,
                conv=self.conv,
                norm=self.norm,
                last_norm=self.last_norm,
                name=name,
            )
            out[name] = x = made(x, train=train)
        out["features"] = x.astype(jnp.float32).mean((1, 2))
        return out["features"], out


def _basic(repeats: int) -> tuple[Callable[..., nn.Module], ...]:
    """Four stages of 64 to 512 channels; all but the first begin by halving."""
    return tuple(
        functools.partial(BasicBlock, features, 2 if stage and not repeat else 1)
        for stage, features in enumerate((64, 128, 256, 512))
        for repeat in range(repeats)
    )


ResNet10 = functools.partial(ResNet, _basic(1))
"""The lineage's ResNet10: 512 features, 4,905,792 parameters."""

ResNet18 = functools.partial(ResNet, _basic(2))
"""The lineage's ResNet18: 512 features."""

ResNet12 = functools.partial(
    ResNet,
    tuple(functools.partial(PoolingBlock, n) for n in (64, 160, 320, 640)),
    stem=False,
)
"""The wide ResNet12 of MetaOptNet and RFS, without DropBlock: 640 features."""
