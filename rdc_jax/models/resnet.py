"""The residual networks of the few-shot field, as Flax linen modules."""

import functools
from collections.abc import Callable, Sequence
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

    The shortcut is the identity where channels and size stay the same, else a 1x1
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
        if x.shape[-1] != self.features or self.stride > 1:
            x = conv(self.features, 1, self.stride, name="shortcut_conv")(x)
            x = last_norm(name="shortcut_norm")(x, train=train)
        return nn.relu(x + y)


class Bottleneck(nn.Module):
    """A 1x1, a 3x3 and a 1x1 convolution, and a shortcut (ResNet-50).

    Attributes:
      features: Output channels; a quarter of them between the convolutions.
      stride: Of the 3x3 convolution, and of the shortcut.
      early: Put the stride into the first convolution instead, as the network was
        published; nearly all weights there are have it in the second.
      dtype: Of the computation.
      conv: Implementation of the convolutions.
      norm: As in ``BasicBlock``.
      last_norm: As in ``BasicBlock``, after the third convolution.
    """

    features: int
    stride: int = 1
    early: bool = False
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
        first, second = (self.stride, 1) if self.early else (1, self.stride)
        y, inner = x, self.features // 4
        for i, size, stride in ((1, 1, first), (2, 3, second)):
            y = conv(inner, size, stride, name=f"conv{i}")(y)
            y = nn.relu(self.norm(dtype=self.dtype, name=f"norm{i}")(y, train=train))
        y = conv(self.features, 1, name="conv3")(y)
        y = last_norm(name="norm3")(y, train=train)
        if x.shape[-1] != self.features or self.stride > 1:
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
      stem: Channels of the 7x7 stride-2 convolution that begins, with a 3x3 max-pool;
        0: none.
      dtype: Of the computation; parameters and BN statistics are float32.
      conv: Implementation of the convolutions: ``auto`` or ``xla``.
      norm: Norm of the stem and the blocks, see ``BasicBlock``. One that draws random
        numbers in training takes them from the stream ``noise``:
        ``apply(..., train=True, rngs={"noise": key})``.
      last_norm: The last norm of each block, see ``BasicBlock``.
      start: How many of ``stages`` to leave out, see ``Model.after``.
    """

    blocks: tuple[Callable[..., nn.Module], ...]
    stem: int = 64
    dtype: Any = jnp.float32
    conv: Implementation = "auto"
    norm: Norm = BatchNorm
    last_norm: Norm | None = None
    start: int = 0

    @property
    def stages(self) -> tuple[str, ...]:
        """What runs in a row: intermediates, whose names begin those of modules."""
        blocks = [f"block{i + 1}" for i in range(len(self.blocks))]
        return ("stem", *blocks) if self.stem else tuple(blocks)

    @nn.compact
    def __call__(
        self, images: Float[Array, "b h w c"], *, train: bool = False
    ) -> tuple[Float[Array, "b d"], dict[str, Any]]:
        """Compute features.

        Args:
          images: Normalised images of any size, or what the stages left out give.
          train: Normalise by the batch's statistics (see ``BatchNorm``).

        Returns:
          Float32 features, and a dict of the intermediates ``stem``, ``block1``, ...
          and ``features``.
        """
        out = {}
        x = images.astype(self.dtype)
        if self.stem and not self.start:
            x = Conv(self.stem, 7, 2, self.dtype, self.conv, name="stem_conv")(x)
            x = self.norm(dtype=self.dtype, name="stem_norm")(x, train=train)
            x = max_pool(nn.relu(x), size=3, stride=2, padding=1)
            out["stem"] = x
        blocks = zip(self.stages[-len(self.blocks) :], self.blocks, strict=True)
        for name, block in blocks:
            if name not in self.stages[self.start :]:
                continue
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


def residual(
    depths: Sequence[int],
    widths: Sequence[int] = (64, 128, 256, 512),
    *,
    bottleneck: bool = False,
    early: bool = False,
    stem: int = 64,
    dtype: Any = jnp.float32,
    conv: Implementation = "auto",
    norm: Norm = BatchNorm,
    last_norm: Norm | None = None,
) -> ResNet:
    """Make a residual network of stages.

    Args:
      depths: Blocks of each stage; all stages but the first begin by halving.
      widths: Channels that leave each stage.
      bottleneck: Whether blocks are ``Bottleneck``.
      early: See ``Bottleneck``.
      stem: See ``ResNet``, as the others.
      dtype: Of the computation.
      conv: Implementation of the convolutions.
      norm: Of the stem and the blocks.
      last_norm: Of the blocks.
    """
    block = functools.partial(Bottleneck, early=early) if bottleneck else BasicBlock
    blocks = tuple(
        functools.partial(block, width, 2 if stage and not repeat else 1)
        for stage, (depth, width) in enumerate(zip(depths, widths, strict=True))
        for repeat in range(depth)
    )
    return ResNet(blocks, stem, dtype, conv, norm, last_norm)


ResNet10 = functools.partial(residual, (1, 1, 1, 1))
"""The lineage's ResNet10: 512 features, 4,905,792 parameters."""

ResNet18 = functools.partial(residual, (2, 2, 2, 2))
"""ResNet18, which is the lineage's too: 512 features."""

ResNet34 = functools.partial(residual, (3, 4, 6, 3))
"""ResNet34: 512 features."""

ResNet50 = functools.partial(
    residual, (3, 4, 6, 3), (256, 512, 1024, 2048), bottleneck=True
)
"""ResNet50 with the stride in the 3x3 convolutions: 2,048 features."""

ResNet12 = functools.partial(
    ResNet,
    tuple(functools.partial(PoolingBlock, n) for n in (64, 160, 320, 640)),
    stem=0,
)
"""The wide ResNet12 of MetaOptNet and RFS, without DropBlock: 640 features."""
