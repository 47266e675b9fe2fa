"""Feature-wise transformation: features move as they would in another domain.

Tseng et al., "Cross-Domain Few-Shot Classification via Learned Feature-Wise
Transformation", ICLR 2020.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.norm import BatchNorm

COLLECTION = "feature_wise"
_SHARPNESS = 100.0  # Of the softplus: the value is nearly the weight itself.


class FeatureWise(BatchNorm):
    """Batch norm, then in training a random scale and shift of each channel.

    To be injected as ``last_norm`` of residual networks. With n ~ N(0, 1) of the random
    stream ``noise``, one draw a channel and call, for all images and places,

        z <- (1 + n softplus(theta_scale)) z + n' softplus(theta_shift)     # Eq. 1-3

    so the weights are standard deviations. They are in a collection of their own, where
    no optimiser of ``params`` moves them. In evaluation this is plain batch norm, bit
    for bit.

    Attributes:
      scale: Each theta_scale at first.
      shift: Each theta_shift at first.
      shortcuts: Also after the norm of a shortcut, as in the authors' code. Their text
        has it after the last norm of a block alone.
    """

    scale: float = 0.3
    shift: float = 0.5
    shortcuts: bool = True

    @nn.compact
    def __call__(
        self, x_bhwc: Float[Array, "b h w c"], *, train: bool
    ) -> Float[Array, "b h w c"]:
        """Normalise each channel; in training, move it."""
        y_bhwc = super().__call__(x_bhwc, train=train)
        if self.name == "shortcut_norm" and not self.shortcuts:
            return y_bhwc
        if not train and not self.is_initializing():
            return y_bhwc
        shape = x_bhwc.shape[-1:]
        scale_c = self.variable(COLLECTION, "scale", jnp.full, shape, self.scale)
        shift_c = self.variable(COLLECTION, "shift", jnp.full, shape, self.shift)
        if self.is_initializing():
            return y_bhwc
        noise_2c = jax.random.normal(self.make_rng("noise"), (2, *shape))
        gain_c = 1 + noise_2c[0] * softplus(scale_c.value)
        moved_bhwc = y_bhwc * gain_c + noise_2c[1] * softplus(shift_c.value)
        return moved_bhwc.astype(self.dtype)


def softplus(x: Float[Array, " c"]) -> Float[Array, " c"]:
    """Give log(1 + exp(100 x)) / 100."""
    return jax.nn.softplus(_SHARPNESS * x) / _SHARPNESS
