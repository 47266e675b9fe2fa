"""Batch normalisation with torch's running statistics."""

from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jax import lax
from jaxtyping import Array, Float


class BatchNorm(nn.Module):
    """``torch.nn.BatchNorm2d`` on channels-last images.

    Unlike Flax's, the running variance is the unbiased one (divided by n - 1), so that
    a training step leaves the statistics torch's would leave. Statistics are computed
    and kept in float32 whatever ``dtype`` is. They are over the batch as the program
    sees it: under ``jit`` with a batch sharded over devices, the global batch.

    With ``train=True`` the batch's own statistics normalise; the running ones are
    updated if the caller made ``batch_stats`` mutable, and left alone otherwise. With
    ``train=False`` the running statistics normalise, and gradients still flow to
    ``scale`` and ``bias``.

    Attributes:
      momentum: Share of the old running statistics that is kept; torch names the
        other share (its .1 is .9 here).
      epsilon: Added to the variance, so that the root is not of zero.
      dtype: Type of the result; the statistics are float32.
    """

    momentum: float = 0.9
    epsilon: float = 1e-5
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(
        self, x_bhwc: Float[Array, "b h w c"], *, train: bool
    ) -> Float[Array, "b h w c"]:
        """Normalise each channel."""
        shape = x_bhwc.shape[-1:]
        scale_c = self.param("scale", nn.initializers.ones, shape, jnp.float32)
        bias_c = self.param("bias", nn.initializers.zeros, shape, jnp.float32)
        running_mean = self.variable("batch_stats", "mean", jnp.zeros, shape)
        running_var = self.variable("batch_stats", "var", jnp.ones, shape)
        mean_c, var_c = running_mean.value, running_var.value
        if train:
            mean_c, var_c = _statistics(x_bhwc, about_c=running_mean.value)
            if self.is_mutable_collection("batch_stats") and not self.is_initializing():
                count = x_bhwc.size // x_bhwc.shape[-1]
                unbiased_c = var_c * (count / max(count - 1, 1))
                running_mean.value = self._blend(running_mean.value, mean_c)
                running_var.value = self._blend(running_var.value, unbiased_c)
        gain_c = scale_c * lax.rsqrt(var_c + self.epsilon)
        return (x_bhwc * gain_c + (bias_c - mean_c * gain_c)).astype(self.dtype)

    def _blend(self, old: Array, new: Array) -> Array:
        return self.momentum * old + (1 - self.momentum) * lax.stop_gradient(new)


def _statistics(x_bhwc: Array, about_c: Array) -> tuple[Array, Array]:
    """Mean and biased variance of each channel, in one pass over the images.

    The squares are taken about a point near the mean, where E[x^2] - E[x]^2 does not
    cancel.
    """
    shifted = x_bhwc.astype(jnp.float32) - lax.stop_gradient(about_c)
    mean_c = shifted.mean((0, 1, 2))
    var_c = jnp.square(shifted).mean((0, 1, 2)) - jnp.square(mean_c)
    return mean_c + about_c, jnp.maximum(var_c, 0)
