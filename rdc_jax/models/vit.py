"""Vision transformers as a Flax linen module: DINO, DINOv2, CLIP, SigLIP and others."""

import functools
from typing import Any, Literal

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.conv import Implementation
from rdc_jax.models.positions import resampled
from rdc_jax.models.transformer import Activation, AttentionPool, Block, norm, normal
from rdc_jax.runtime.errors import UserError


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
            x_bnd = norm(self, "norm_pre")(x_bnd)
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
        last = norm(self, "norm")
        tokens = x_bnd if self.norm_last else last(x_bnd)
        out["patches"] = tokens[:, prefix:].reshape(b, h, w, d)
        pooled = self._pooled(tokens, hidden)
        pooled = last(pooled) if self.norm_last else pooled
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
            first.append(self.param("class_token", normal, (1, d)))
        if self.registers:
            first.append(self.param("registers", normal, (self.registers, d)))
        shape = (self.placed + self.grid**2, d)
        positions = self.param("positions", normal, shape)
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
        kernel = self.param("kernel", normal, self.shape)
        y = flat @ kernel.reshape(-1, self.shape[-1]).astype(dtype)
        if self.bias:
            zeros = nn.initializers.zeros
            y = y + self.param("bias", zeros, self.shape[-1:]).astype(dtype)
        return y


ViTTiny = functools.partial(ViT, width=192, heads=3)
"""ViT-Ti/16 for 224 pixels: 192 features."""

ViTSmall = functools.partial(ViT, width=384, heads=6)
"""ViT-S/16 for 224 pixels, the network of DINO: 384 features."""

ViTBase = functools.partial(ViT, width=768, heads=12)
"""ViT-B/16 for 224 pixels: 768 features."""

ViTLarge = functools.partial(ViT, width=1024, depth=24, heads=16)
"""ViT-L/16 for 224 pixels: 1,024 features."""
