"""Batch normalisation of the rows of a task, whose moments are a choice."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
from flax import linen as nn
from jax import lax
from jaxtyping import Array, Float, Shaped

Moments = Literal["batch", "support", "running"]


class Counts(NamedTuple):
    """How often each row counts, ``[g, ...]``: g graphs, whose rows may be padding.

    Attributes:
      every: Any row.
      support: Rows of supports; zero at others.
    """

    every: Shaped[Array, "g ..."]
    support: Shaped[Array, "g ..."]


class EpisodeNorm(nn.Module):
    """Batch norm over the rows of all graphs of a task.

    Attributes:
      moments: Whose mean and variance normalise. ``batch``: of all rows of the task,
        in training and at test, as the published codes have it; so each query changes
        the answers to the others. ``support``: of each graph's own supports.
        ``running``: of all rows in training, and at test their averages over training.
        These averages are kept with any choice, so that a model can be tested with
        each.
      momentum: Share of the old running moments that is kept.
      epsilon: Added to the variance.
    """

    moments: str = "batch"
    momentum: float = 0.9
    epsilon: float = 1e-5

    @nn.compact
    def __call__(
        self, x: Float[Array, "g ... f"], counts: Counts, *, train: bool
    ) -> Float[Array, "g ... f"]:
        """Normalise each feature."""
        shape = x.shape[-1:]
        scale_f = self.param("scale", nn.initializers.ones, shape)
        bias_f = self.param("bias", nn.initializers.zeros, shape)
        running_mean = self.variable("batch_stats", "mean", jnp.zeros, shape)
        running_var = self.variable("batch_stats", "var", jnp.ones, shape)
        if self.moments == "running" and not train:
            mean, var = running_mean.value, running_var.value
        else:
            mean, var, total = self._moments(x, counts)
            kept = train and self.is_mutable_collection("batch_stats")
            if kept and not self.is_initializing():
                self._blend(running_mean, mean)
                self._blend(running_var, var * (total / jnp.maximum(total - 1, 1)))
        return (x - mean) * (scale_f * lax.rsqrt(var + self.epsilon)) + bias_f

    def _moments(self, x: Array, counts: Counts) -> tuple[Array, Array, Array]:
        """Mean, biased variance and number of rows; of each graph, or of all."""
        own = self.moments == "support"
        count = (counts.support if own else counts.every)[..., None].astype(x.dtype)
        axes = tuple(range(1 if own else 0, x.ndim - 1))
        total = jnp.maximum(count.sum(axes, keepdims=True), 1)
        mean = (count * x).sum(axes, keepdims=True) / total
        var = (count * jnp.square(x - mean)).sum(axes, keepdims=True) / total
        return mean, var, total

    def _blend(self, kept: nn.Variable, new: Array) -> None:
        """Move a running moment; to the mean over graphs where each has its own."""
        new_f = lax.stop_gradient(new).mean(tuple(range(new.ndim - 1)))
        kept.value = self.momentum * kept.value + (1 - self.momentum) * new_f
