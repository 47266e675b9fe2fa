"""Flax modules as functions of arrays, the form in which tasks fine-tune them."""

from collections.abc import Callable
from typing import Any

from flax import linen as nn
from jaxtyping import Array


def apply_fn(
    model: nn.Module,
) -> Callable[[Any, Array, bool], tuple[Array, Any]]:
    """Make the function that ``rdc_jax.methods.adapt`` wants of a network.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from rdc_jax import models
      >>> from rdc_jax.models.functional import apply_fn
      >>> model = models.create("resnet10")
      >>> images = jnp.zeros((2, 32, 32, 3))
      >>> variables = jax.jit(model.init)(jax.random.key(0), images)
      >>> apply = jax.jit(apply_fn(model), static_argnums=2)
      >>> features, batch_stats = apply(variables, images, True)
      >>> features.shape
      (2, 512)

    Args:
      model: A module called as ``model(images, train=...)``, which gives features, or
        features and anything else. It may hold batch statistics, or not.

    Returns:
      ``(variables, images, train) -> (features, batch statistics)``.
    """

    def apply(variables: Any, images: Array, train: bool) -> tuple[Array, Any]:
        stats = variables.get("batch_stats", {})
        if not train or not stats:
            out = model.apply(variables, images, train=train)
        else:
            out, updated = model.apply(
                variables, images, train=True, mutable=["batch_stats"]
            )
            stats = updated["batch_stats"]
        return (out[0] if isinstance(out, tuple) else out), stats

    return apply
