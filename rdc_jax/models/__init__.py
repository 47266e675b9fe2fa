"""Backbones, heads and their checkpoints.

Light to import: Flax comes with the first network made, orbax with the first
checkpoint read.
"""

import importlib
from typing import TYPE_CHECKING, Any, get_args

from rdc_jax.runtime.errors import UserError

if TYPE_CHECKING:
    from flax import linen as nn

    from rdc_jax.models.model import Model as Model
    from rdc_jax.models.model import load_backbone as load_backbone
    from rdc_jax.models.model import load_model as load_model

ARCHITECTURES = ("resnet10", "resnet12", "resnet18")


def create(name: str, *, dtype: Any = "float32", conv: str = "auto") -> "nn.Module":
    """Make a backbone by name.

    Args:
      name: One of ``ARCHITECTURES``.
      dtype: Of the computation: ``float32`` or ``bfloat16``. Parameters and batch-norm
        statistics are float32 in either.
      conv: ``xla``, ``matmul``, or ``auto``: the faster one for the backend. The
        numbers and the parameters are the same.

    Returns:
      A linen module; ``features, out = model.apply(variables, images, train=False)``.

    Raises:
      UserError: There is no such architecture, dtype or convolution.

    >>> import jax, jax.numpy as jnp
    >>> model = create("resnet10")
    >>> images = jnp.zeros((1, 32, 32, 3))
    >>> variables = jax.jit(model.init)(jax.random.key(0), images)
    >>> apply = jax.jit(model.apply, static_argnames="train")
    >>> features, out = apply(variables, images, train=False)
    >>> features.shape, out["block3"].shape
    ((1, 512), (1, 2, 2, 256))
    """
    import jax.numpy as jnp

    from rdc_jax.models import resnet
    from rdc_jax.models.conv import Implementation

    dtype = dtype if isinstance(dtype, str) else jnp.dtype(dtype).name
    _known("backbone", name, ARCHITECTURES)
    _known("compute dtype", dtype, ("float32", "bfloat16"))
    _known("convolution", conv, get_args(Implementation))
    return resnet.MAKERS[name](dtype=jnp.dtype(dtype), conv=conv)


def _known(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"unknown {what} {value!r}: choose from {', '.join(choices)}")


def __getattr__(name: str) -> Any:
    if name in ("Model", "load_backbone", "load_model"):
        return getattr(importlib.import_module("rdc_jax.models.model"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
