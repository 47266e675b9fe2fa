"""Decoders: what makes images of features."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.conv import conv
from rdc_jax.models.heads.linear import Linear
from rdc_jax.runtime.registry import Registry

_DOUBLED = 4  # times


class Doubling(nn.Module):
    """torch's ``ConvTranspose2d(features, 2, stride=2)``: each pixel becomes four."""

    features: int

    @nn.compact
    def __call__(self, x_bhwi: Float[Array, "b h w i"]) -> Float[Array, "b h2 w2 o"]:
        """Double both edges."""
        b, h, w, i = x_bhwi.shape
        init = uniform((4 * self.features) ** -0.5)
        kernel = self.param("kernel", init, (i, 2, 2, self.features))
        bias_o = self.param("bias", init, (self.features,))
        y = jnp.einsum("bhwi,iuvo->bhuwvo", x_bhwi, kernel)
        return y.reshape(b, 2 * h, 2 * w, self.features) + bias_o


class Deconvolutions(nn.Module):
    """NSAE's decoder: a grid of a sixteenth of the edge, doubled four times.

    Edges that are no multiple of 16 are the centre of the next larger image.

    Attributes:
      size: Edge of the images in pixels.
      channels: Of the grid, and after each doubling.
    """

    size: int
    channels: tuple[int, ...] = (32, 32, 32, 64, 64)

    @nn.compact
    def __call__(
        self, feat_bd: Float[Array, "b d"]
    ) -> Float[Array, "b {self.size} {self.size} 3"]:
        """Make images with values from 0 to 1."""
        edge = -(-self.size // 2**_DOUBLED)
        first, *others = self.channels
        x = nn.relu(Linear(feat_bd.shape[1], name="hidden")(feat_bd))
        x = nn.relu(Linear(edge * edge * first, name="grid")(x))
        x = x.reshape(-1, edge, edge, first)
        for number, features in enumerate(others, 1):
            x = nn.relu(Doubling(features, name=f"double{number}")(x))
        init = uniform((9 * x.shape[-1]) ** -0.5)
        kernel = self.param("kernel", init, (3, 3, x.shape[-1], 3))
        bias_3 = self.param("bias", init, (3,))
        x = nn.sigmoid(conv(x, kernel, padding=1) + bias_3)
        margin = (x.shape[1] - self.size) // 2
        return x[:, margin : margin + self.size, margin : margin + self.size]


def uniform(bound: float) -> nn.initializers.Initializer:
    """Between ``-bound`` and ``bound``, torch's default for layers with a bias."""

    def init(key: jax.Array, shape: tuple[int, ...]) -> Array:
        return jax.random.uniform(key, shape, jnp.float32, -bound, bound)

    return init


DECODERS: Registry[nn.Module] = Registry("decoder", deconvolutions=Deconvolutions)
"""What makes images of features; made with the ``decoder_options``."""
