"""Backbones by name."""

from typing import Any, get_args

import jax.numpy as jnp
from flax import linen as nn

from rdc_jax.models.conv import Implementation
from rdc_jax.models.convnext import ConvNeXt, ConvNeXtTiny
from rdc_jax.models.resnet import (
    ResNet10,
    ResNet12,
    ResNet18,
    ResNet34,
    ResNet50,
    residual,
)
from rdc_jax.models.vit import ViT, ViTBase, ViTLarge, ViTSmall, ViTTiny
from rdc_jax.models.wide_resnet import WideResNet
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.registry import Registry

BACKBONES: Registry[nn.Module] = Registry(
    "backbone",
    resnet10=ResNet10,
    resnet12=ResNet12,
    resnet18=ResNet18,
    resnet34=ResNet34,
    resnet50=ResNet50,
    resnet=residual,
    wrn_28_10=WideResNet,
    convnext_tiny=ConvNeXtTiny,
    convnext=ConvNeXt,
    vit=ViT,
    vit_tiny=ViTTiny,
    vit_small=ViTSmall,
    vit_base=ViTBase,
    vit_large=ViTLarge,
)
"""Called with ``dtype``, ``conv``, and options of their own.

``network(images, train=…)`` gives float32 features ``[b, d]`` and a dict of named
intermediates, ``[b, h, w, c]`` each.
"""


def create(
    name: str, *, dtype: Any = "float32", conv: str = "auto", **options: Any
) -> nn.Module:
    """Make a backbone by name.

    Args:
      name: One of ``BACKBONES``.
      dtype: Of the computation: ``float32`` or ``bfloat16``. Parameters and batch-norm
        statistics are float32 in either.
      conv: ``auto``, the fastest on this backend, or ``xla``, XLA's own convolution.
        The parameters are the same, and the numbers but for rounding.
      **options: Of this backbone, such as ``norm`` for residual networks.

    Returns:
      A linen module; ``features, out = model.apply(variables, images, train=False)``.

    Raises:
      UserError: There is no such backbone, dtype or convolution.

    >>> import jax, jax.numpy as jnp
    >>> model = create("resnet10")
    >>> images = jnp.zeros((1, 32, 32, 3))
    >>> variables = jax.jit(model.init)(jax.random.key(0), images)
    >>> apply = jax.jit(model.apply, static_argnames="train")
    >>> features, out = apply(variables, images, train=False)
    >>> features.shape, out["block3"].shape
    ((1, 512), (1, 2, 2, 256))
    """
    dtype = jnp.dtype(dtype).name if not isinstance(dtype, str) else dtype
    for what, value, choices in (
        ("compute dtype", dtype, ("float32", "bfloat16")),
        ("convolution", conv, get_args(Implementation)),
    ):
        if value not in choices:
            raise UserError(
                f"unknown {what} {value!r}: choose from {', '.join(choices)}"
            )
    return BACKBONES.make(name, dtype=jnp.dtype(dtype), conv=conv, **options)
