"""A backbone of your own: Conv4, four convolutions of 64 channels each.

    python run_pretrain.py --config.plugins=backbone.py --config.arch=conv4 …

A backbone is a linen module under a name. It is made with ``dtype`` (float32 or
bfloat16) and ``conv`` (how convolutions are computed; others are free to leave it), and
gives float32 features and whatever intermediates may be asked for by name.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models import BACKBONES
from rdc_jax.models.conv import Conv, Implementation
from rdc_jax.models.cpu.pool import max_pool
from rdc_jax.models.norm import BatchNorm


@BACKBONES.register("conv4")
class Conv4(nn.Module):
    """The network of Vinyals et al., 2016, with a global average at its end."""

    dtype: Any = jnp.float32
    conv: Implementation = "auto"
    norm: Callable[..., nn.Module] = BatchNorm

    @nn.compact
    def __call__(
        self, images: Float[Array, "b h w 3"], *, train: bool = False
    ) -> tuple[Float[Array, "b 64"], dict[str, Any]]:
        """Compute features."""
        x, out = images.astype(self.dtype), {}
        for i in (1, 2, 3, 4):
            x = Conv(64, 3, 1, self.dtype, self.conv, name=f"conv{i}")(x)
            x = nn.relu(self.norm(dtype=self.dtype, name=f"norm{i}")(x, train=train))
            x = out[f"block{i}"] = max_pool(x, size=2, stride=2)
        out["features"] = x.astype(jnp.float32).mean((1, 2))
        return out["features"], out
