"""Pillow's antialiased bilinear resampling as small matrix products.

An output pixel depends on a few neighbours only, so one matrix for a whole line would
be nearly all zeros. Lines are made in strips instead: each needs a short window of the
input, whose width is known beforehand and whose place is not.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, UInt8

Whole = int | Int[Array, ""]
Pixels = UInt8[Array | np.ndarray, "h w 3"] | Float[Array, "h w 3"]

_STRIP = 32  # output pixels, at most: fewer save arithmetic, more save overhead


class Box(NamedTuple):
    """A crop in whole pixels of its image; the fields may be traced."""

    left: Whole
    top: Whole
    width: Whole
    height: Whole


class Strips(NamedTuple):
    """The linear map along one axis, from an image line to its resampled crop."""

    first: Int[Array, " t"]  # where the window of each strip begins
    weight: Float[Array, "t o i"]  # from the window to the strip


def filter_strips(
    start: Whole, length: Whole, *, in_size: int, out_size: int
) -> Strips:
    """Weights of the pixels from ``start`` on, for a line of ``out_size`` pixels.

    The filter is a triangle, one output pixel wide on each side when shrinking and
    one input pixel wide when enlarging, cut off at the crop's border. The last strip
    may reach beyond the line.
    """
    count = -(-out_size // _STRIP)
    strip = -(-out_size // count)
    # What a strip can depend on; one for the floor below, one for float32.
    shrink = in_size / out_size
    reach = (strip - 1) * shrink + 2 * max(shrink, 1.0)
    window = min(math.ceil(reach) + 2, in_size)
    scale = jnp.asarray(length, jnp.float32) / out_size
    radius = jnp.maximum(scale, 1.0)
    # Relative to the crop, which keeps float32 exact where it matters.
    centre_to = (jnp.arange(count * strip, dtype=jnp.float32) + 0.5) * scale
    centre_to = centre_to.reshape(count, strip)
    first_t = start + jnp.floor(centre_to[:, 0] - radius).astype(jnp.int32)
    first_t = jnp.clip(first_t, 0, in_size - window)
    pixel_ti = first_t[:, None] - start + jnp.arange(window, dtype=jnp.int32)
    offset_toi = pixel_ti.astype(jnp.float32)[:, None, :] + 0.5 - centre_to[:, :, None]
    weight_toi = jnp.maximum(0.0, 1.0 - jnp.abs(offset_toi) / radius)
    inside_ti = (pixel_ti >= 0) & (pixel_ti < length)
    weight_toi = jnp.where(inside_ti[:, None, :], weight_toi, 0.0)
    sum_to1 = weight_toi.sum(axis=2, keepdims=True)
    return Strips(first_t, weight_toi / jnp.where(sum_to1 > 0, sum_to1, 1.0))


def resample(image: Pixels, box: Box, size: int) -> Float[Array, "{size} {size} 3"]:
    """Crop ``box`` and resize it to a square, as Pillow does on 8-bit images.

    The box must lie inside the image. Values are whole numbers from 0 to 255.

    Examples:
      >>> image = jnp.arange(48, dtype=jnp.uint8).reshape(4, 4, 3)
      >>> box = Box(left=0, top=0, width=2, height=2)
      >>> jax.jit(resample, static_argnums=2)(image, box, 1)[0, 0]
      Array([ 8.,  9., 10.], dtype=float32)
    """
    return jnp.moveaxis(resample_planes(image, box, size), 1, 2)


def resample_planes(
    image: Pixels, box: Box, size: int
) -> Float[Array, "{size} 3 {size}"]:
    """``resample`` with the colours before the columns, which is faster to compute."""
    height, width, _ = image.shape
    # Along the rows first, rounding to 8 bits after each pass. Pillow did so for
    # every image when the field's code was written; Pillow 13 picks the order.
    wide = filter_strips(box.left, box.width, in_size=width, out_size=size)
    window_thic = _windows(jnp.asarray(image), wide, axis=1)
    window_tchi = jnp.moveaxis(window_thic, 3, 1).astype(jnp.float32)
    narrow_tcho = _contract("tchi,toi->tcho", window_tchi, wide.weight)
    narrow_hcto = _to_levels(narrow_tcho).astype(jnp.uint8).transpose(2, 1, 0, 3)
    narrow_hcw = narrow_hcto.reshape(height, 3, -1)[:, :, :size]
    tall = filter_strips(box.top, box.height, in_size=height, out_size=size)
    window_ticw = _windows(narrow_hcw, tall, axis=0).astype(jnp.float32)
    result_tocw = _contract("toi,ticw->tocw", tall.weight, window_ticw)
    return _to_levels(result_tocw).reshape(-1, 3, size)[:size]


def resize(image: Pixels, size: int) -> Float[Array, "{size} {size} 3"]:
    """Resize the whole image to a square; the aspect ratio is not kept."""
    height, width, _ = image.shape
    if height == width == size:
        return jnp.asarray(image, jnp.float32)
    return resample(image, Box(left=0, top=0, width=width, height=height), size)


def _windows(values: Num[Array, "..."], strips: Strips, *, axis: int) -> Array:
    """The window of each strip along an axis, stacked in front."""
    window = strips.weight.shape[2]

    def one(first: Int[Array, ""]) -> Array:
        return jax.lax.dynamic_slice_in_dim(values, first, window, axis)

    return jax.vmap(one)(strips.first)


def _contract(letters: str, left: Num[Array, "..."], right: Num[Array, "..."]) -> Array:
    """An ``einsum`` whose products are not rounded to bfloat16 or TF32."""
    return jnp.einsum(letters, left, right, precision=jax.lax.Precision.HIGHEST)


def _to_levels(values: Float[Array, "..."]) -> Float[Array, "..."]:
    return jnp.floor(values + 0.5)
