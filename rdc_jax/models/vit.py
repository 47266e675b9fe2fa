"""Vision transformers, as Flax linen modules: DINO, DINOv2, CLIP, SigLIP and others."""

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.conv import Implementation
from rdc_jax.models.positions import resampled
from rdc_jax.runtime.errors import UserError

Activation = Literal["gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "swiglu"]

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": functools.partial(nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(nn.gelu, approximate=True),
    "quick_gelu": lambda x: x * nn.sigmoid(1.702 * x),
    "silu": nn.silu,
    "relu": nn.relu,
}
_normal = nn.initializers.truncated_normal(0.02)


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
        dense = functools.partial(nn.Dense, dtype=self.dtype, kernel_init=_normal)
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
        dense = functools.partial(nn.Dense, dtype=self.dtype, kernel_init=_normal)
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
            y = layer(_norm(self, f"norm{number}")(x_bnd))
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
        dense = functools.partial(nn.Dense, dtype=self.dtype, kernel_init=_normal)
        probe_d = self.param("probe", _normal, (d,)).astype(self.dtype)
        query = jnp.broadcast_to(dense(d, name="query")(probe_d), (b, 1, d))
        both = dense(2 * d, name="key_value")(x_bnd)
        key, value = jnp.split(both.reshape(b, n, 2 * self.heads, -1), 2, axis=2)
        query = query.reshape(b, 1, self.heads, -1)
        y_bd = jax.nn.dot_product_attention(query, key, value).reshape(b, d)
        y_bd = dense(d, name="out")(y_bd)
        mlp = Mlp(self.hidden, self.activation, self.dtype, name="mlp")
        return y_bd + mlp(_norm(self, "norm")(y_bd))


class ViT(nn.Module):
    """Patches, tokens with positions, blocks, and one row of features an image.

    Images may have any size of at least a patch: what a whole number of patches does
    not cover is left out, and positions are resampled.

    Attributes:
      width: Entries of a token.
      depth: Number of blocks.
      heads: Number of attention heads.
      patch: Edge of a patch in pixels.
      grid: Patches a side of the images that positions are for.
      hidden: Of the MLPs; None: four times the width.
      activation: Between the two layers of each MLP.
      class_token: Whether there is one.
      registers: Further tokens, which features leave out.
      placed: How many of these first tokens have positions.
      antialias: Of the resampling of positions.
      pre_norm: Normalise tokens before the first block (CLIP).
      layer_scale: See ``Block``.
      patch_bias: Whether the patches' projection has a bias.
      qkv_bias: See ``Attention``.
      pool: What features are of: the ``class`` token, the ``mean`` of the patches, or
        an ``attention`` pool over them.
      norm_last: Normalise the pooled row instead of each token.
      projection: Length of features that are projected; 0: they are as wide as tokens.
      epsilon: Added to variances before the root.
      dtype: Of the computation; parameters are float32.
      conv: Taken for the sake of other backbones.
    """

    width: int = 384
    depth: int = 12
    heads: int = 6
    patch: int = 16
    grid: int = 14
    hidden: int | None = None
    activation: Activation = "gelu"
    class_token: bool = True
    registers: int = 0
    placed: int = 1
    antialias: bool = False
    pre_norm: bool = False
    layer_scale: bool = False
    patch_bias: bool = True
    qkv_bias: bool = True
    pool: Literal["class", "mean", "attention"] = "class"
    norm_last: bool = False
    projection: int = 0
    epsilon: float = 1e-6
    dtype: Any = jnp.float32
    conv: Implementation = "auto"

    @nn.compact
    def __call__(
        self, images: Float[Array, "b h w 3"], *, train: bool = False
    ) -> tuple[Float[Array, "b d"], dict[str, Any]]:
        """Compute features.

        Args:
          images: Normalised images.
          train: Has no effect: nothing here draws or normalises over a batch.

        Returns:
          Float32 features, and a dict of intermediates: ``stem`` and ``block1``, …, the
          patches as maps ``[b, h, w, d]``; ``class1``, …, the class token after each
          block; ``patches``, the maps after the last normalisation; ``features``.
        """
        del train
        hidden = self.hidden or 4 * self.width
        x_bhwd = self._patches(images.astype(self.dtype))
        b, h, w, d = x_bhwd.shape
        x_bnd, prefix = self._tokens(x_bhwd), self._prefix
        out: dict[str, Any] = {"stem": x_bnd[:, prefix:].reshape(b, h, w, d)}
        if self.pre_norm:
            x_bnd = _norm(self, "norm_pre")(x_bnd)
        for i in range(1, self.depth + 1):
            x_bnd = Block(
                self.heads,
                hidden,
                self.activation,
                self.qkv_bias,
                self.layer_scale,
                self.epsilon,
                self.dtype,
                name=f"block{i}",
            )(x_bnd)
            out[f"block{i}"] = x_bnd[:, prefix:].reshape(b, h, w, d)
            if self.class_token:
                out[f"class{i}"] = x_bnd[:, 0]
        norm = _norm(self, "norm")
        tokens = x_bnd if self.norm_last else norm(x_bnd)
        out["patches"] = tokens[:, prefix:].reshape(b, h, w, d)
        pooled = self._pooled(tokens, hidden)
        pooled = norm(pooled) if self.norm_last else pooled
        if self.projection:
            pooled = nn.Dense(
                self.projection, use_bias=False, dtype=self.dtype, name="projection"
            )(pooled)
        out["features"] = pooled.astype(jnp.float32)
        return out["features"], out

    @property
    def _prefix(self) -> int:
        """Tokens before the patches."""
        return self.class_token + self.registers

    def _patches(self, images: Float[Array, "b y x c"]) -> Float[Array, "b h w d"]:
        """Project each patch: a convolution of that stride, as one product."""
        p, (b, height, width, c) = self.patch, images.shape
        h, w = height // p, width // p
        if not (h and w):
            raise UserError(
                f"images of {width} x {height} px are smaller than a patch of the "
                f"network, {p} px: set a larger image size"
            )
        cut = images[:, : h * p, : w * p].reshape(b, h, p, w, p, c)
        flat = cut.transpose(0, 1, 3, 2, 4, 5).reshape(b, h, w, p * p * c)
        shape = (p, p, c, self.width)
        kernel = _Patches(shape, self.patch_bias, name="patches")
        return kernel(flat, self.dtype)

    def _tokens(self, x_bhwd: Float[Array, "b h w d"]) -> Float[Array, "b n d"]:
        """All tokens with their positions."""
        b, h, w, d = x_bhwd.shape
        first = []
        if self.class_token:
            first.append(self.param("class_token", _normal, (1, d)))
        if self.registers:
            first.append(self.param("registers", _normal, (self.registers, d)))
        shape = (self.placed + self.grid**2, d)
        positions = self.param("positions", _normal, shape)
        grid_hwd = positions[self.placed :].reshape(self.grid, self.grid, d)
        grid_hwd = resampled(grid_hwd, h, w, antialias=self.antialias)
        x_bnd = (x_bhwd + grid_hwd.astype(self.dtype)).reshape(b, h * w, d)
        if not first:
            return x_bnd
        prefix_pd = jnp.concatenate(first)
        prefix_pd = prefix_pd.at[: self.placed].add(positions[: self.placed])
        prefix = jnp.broadcast_to(prefix_pd.astype(self.dtype), (b, *prefix_pd.shape))
        return jnp.concatenate([prefix, x_bnd], axis=1)

    def _pooled(
        self, tokens: Float[Array, "b n d"], hidden: int
    ) -> Float[Array, "b d"]:
        if self.pool == "class":
            return tokens[:, 0]
        patches = tokens[:, self._prefix :]
        if self.pool == "mean":
            return patches.mean(axis=1, dtype=jnp.float32).astype(self.dtype)
        return AttentionPool(
            self.heads, hidden, self.activation, self.epsilon, self.dtype, name="pool"
        )(patches)


class _Patches(nn.Module):
    """The kernel of the patches' convolution, HWIO, and its bias."""

    shape: tuple[int, int, int, int]
    bias: bool

    @nn.compact
    def __call__(self, flat: Float[Array, "b h w i"], dtype: Any) -> Array:
        kernel = self.param("kernel", _normal, self.shape)
        y = flat @ kernel.reshape(-1, self.shape[-1]).astype(dtype)
        if self.bias:
            zeros = nn.initializers.zeros
            y = y + self.param("bias", zeros, self.shape[-1:]).astype(dtype)
        return y


def _norm(module: Any, name: str) -> nn.LayerNorm:
    # Not by the fast variance: a few features of large ViTs dwarf the others.
    return nn.LayerNorm(
        module.epsilon, dtype=module.dtype, use_fast_variance=False, name=name
    )


ViTTiny = functools.partial(ViT, width=192, heads=3)
"""ViT-Ti/16 for 224 pixels: 192 features."""

ViTSmall = functools.partial(ViT, width=384, heads=6)
"""ViT-S/16 for 224 pixels, the network of DINO: 384 features."""

ViTBase = functools.partial(ViT, width=768, heads=12)
"""ViT-B/16 for 224 pixels: 768 features."""

ViTLarge = functools.partial(ViT, width=1024, depth=24, heads=16)
"""ViT-L/16 for 224 pixels: 1,024 features."""
