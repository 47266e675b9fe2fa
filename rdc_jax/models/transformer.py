"""The parts of vision transformers, as Flax linen modules."""

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

Activation = Literal["gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "swiglu"]

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": functools.partial(nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(nn.gelu, approximate=True),
    "quick_gelu": lambda x: x * nn.sigmoid(1.702 * x),
    "silu": nn.silu,
    "relu": nn.relu,
}
normal = nn.initializers.truncated_normal(0.02)


class Mlp(nn.Module):
    """Two dense layers; with ``swiglu`` the first one makes gates beside the values.

    Attributes:
      hidden: Width between the layers.
      activation: Between the layers.
      dtype: Type of the computation.
    """

    hidden: int
    activation: Activation = "gelu"
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
        """Apply the layers to each row."""
        dense = functools.partial(nn.Dense, dtype=self.dtype, kernel_init=normal)
        if self.activation == "swiglu":
            gate, y = jnp.split(dense(2 * self.hidden, name="up")(x), 2, axis=-1)
            y = nn.silu(gate) * y
        else:
            y = _ACTIVATIONS[self.activation](dense(self.hidden, name="up")(x))
        return dense(x.shape[-1], name="down")(y)


class Attention(nn.Module):
    """Attention of tokens to each other.

    Attributes:
      heads: Their number.
      bias: Whether queries, keys and values have one.
      dtype: Type of the computation.
    """

    heads: int
    bias: bool = True
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x_bnd: Float[Array, "b n d"]) -> Float[Array, "b n d"]:
        """Apply the layer."""
        b, n, d = x_bnd.shape
        dense = functools.partial(nn.Dense, dtype=self.dtype, kernel_init=normal)
        mixed = dense(3 * d, use_bias=self.bias, name="qkv")(x_bnd)
        mixed_bn3he = mixed.reshape(b, n, 3, self.heads, d // self.heads)
        query, key, value = (mixed_bn3he[:, :, i] for i in range(3))
        y_bnd = jax.nn.dot_product_attention(query, key, value).reshape(b, n, d)
        return dense(d, name="out")(y_bnd)


class Block(nn.Module):
    """Attention and an MLP, each on normalised tokens and added to them.

    Attributes:
      heads: Number of attention heads.
      hidden: Width of the MLP's hidden layer.
      activation: Between the MLP's two layers.
      qkv_bias: See ``Attention``.
      layer_scale: Whether what is added is first scaled, feature by feature.
      epsilon: Added to variances before the root.
      dtype: Type of the computation.
    """

    heads: int
    hidden: int
    activation: Activation = "gelu"
    qkv_bias: bool = True
    layer_scale: bool = False
    epsilon: float = 1e-6
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x_bnd: Float[Array, "b n d"]) -> Float[Array, "b n d"]:
        """Apply the block."""
        attention = Attention(self.heads, self.qkv_bias, self.dtype, name="attention")
        mlp = Mlp(self.hidden, self.activation, self.dtype, name="mlp")
        for number, layer in ((1, attention), (2, mlp)):
            y = layer(norm(self, f"norm{number}")(x_bnd))
            if self.layer_scale:
                ones = nn.initializers.ones
                scale_d = self.param(f"scale{number}", ones, x_bnd.shape[-1:])
                y = y * scale_d.astype(self.dtype)
            x_bnd = x_bnd + y
        return x_bnd


class AttentionPool(nn.Module):
    """One learned query that attends to all tokens, then an MLP (SigLIP).

    Attributes:
      heads: Number of attention heads.
      hidden: Width of the MLP's hidden layer.
      activation: Between the MLP's two layers.
      epsilon: Added to the variance before the root.
      dtype: Type of the computation.
    """

    heads: int
    hidden: int
    activation: Activation = "gelu"
    epsilon: float = 1e-6
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x_bnd: Float[Array, "b n d"]) -> Float[Array, "b d"]:
        """Pool the tokens."""
        b, n, d = x_bnd.shape
        dense = functools.partial(nn.Dense, dtype=self.dtype, kernel_init=normal)
        probe_d = self.param("probe", normal, (d,)).astype(self.dtype)
        query = jnp.broadcast_to(dense(d, name="query")(probe_d), (b, 1, d))
        both = dense(2 * d, name="key_value")(x_bnd)
        key, value = jnp.split(both.reshape(b, n, 2 * self.heads, -1), 2, axis=2)
        query = query.reshape(b, 1, self.heads, -1)
        y_bd = jax.nn.dot_product_attention(query, key, value).reshape(b, d)
        y_bd = dense(d, name="out")(y_bd)
        mlp = Mlp(self.hidden, self.activation, self.dtype, name="mlp")
        return y_bd + mlp(norm(self, "norm")(y_bd))


def norm(module: Any, name: str) -> nn.LayerNorm:
    """Make a layer norm with the epsilon and dtype of a module."""
    # Not by the fast variance: a few features of large ViTs dwarf the others.
    return nn.LayerNorm(
        module.epsilon, dtype=module.dtype, use_fast_variance=False, name=name
    )
