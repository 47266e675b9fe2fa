"""Pillow's antialiased bilinear resampling as two small matrix products."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, UInt8

Whole = int | Int[Array, ""]
Pixels = UInt8[Array | np.ndarray, "h w 3"] | Float[Array, "h w 3"]


class Box(NamedTuple):
    """A crop in whole pixels of its image; the fields may be traced."""

    left: Whole
    top: Whole
    width: Whole
    height: Whole


def filter_weights(
    start: Whole, length: Whole, *, in_size: int, out_size: int
) -> Float[Array, "o i"]:
    """The linear map along one axis, from an image line to its resampled crop.

    The filter is a triangle, one output pixel wide on each side when shrinking and
    one input pixel wide when enlarging, cut off at the crop's border.
    """
    scale = jnp.asarray(length, jnp.float32) / out_size
    centre_o = (jnp.arange(out_size, dtype=jnp.float32) + 0.5) * scale
    # Relative to the crop, which keeps float32 exact where it matters.
    pixel_i = jnp.arange(in_size, dtype=jnp.int32) - start
    offset_oi = pixel_i.astype(jnp.float32)[None, :] + 0.5 - centre_o[:, None]
    weight_oi = jnp.maximum(0.0, 1.0 - jnp.abs(offset_oi) / jnp.maximum(scale, 1.0))
    inside_i = (pixel_i >= 0) & (pixel_i < length)
    weight_oi = jnp.where(inside_i[None, :], weight_oi, 0.0)
    return weight_oi / weight_oi.sum(axis=1, keepdims=True)


def resample(image: Pixels, box: Box, size: int) -> Float[Array, "{size} {size} 3"]:
    """Crop ``box`` and resize it to a square, as Pillow does on 8-bit images.

    Args:
      image: One image, values 0 to 255.
      box: The crop; it must lie inside the image.
      size: Edge of the result in pixels (static).

    Returns:
      Whole numbers from 0 to 255, as float32.

    Examples:
      >>> image = jnp.arange(48, dtype=jnp.uint8).reshape(4, 4, 3)
      >>> box = Box(left=0, top=0, width=2, height=2)
      >>> jax.jit(resample, static_argnums=2)(image, box, 1)[0, 0]
      Array([ 8.,  9., 10.], dtype=float32)
    """
    height, width, _ = image.shape
    weight_ow = filter_weights(box.left, box.width, in_size=width, out_size=size)
    weight_oh = filter_weights(box.top, box.height, in_size=height, out_size=size)
    # Along the rows first, rounding to 8 bits after each pass. Pillow did so for
    # every image when the field's code was written; Pillow 13 picks the order.
    narrow = _contract("ow,hwc->hoc", weight_ow, jnp.asarray(image, jnp.float32))
    return _to_levels(_contract("oh,hwc->owc", weight_oh, _to_levels(narrow)))


def resize(image: Pixels, size: int) -> Float[Array, "{size} {size} 3"]:
    """Resize the whole image to a square; the aspect ratio is not kept."""
    height, width, _ = image.shape
    if height == width == size:
        return jnp.asarray(image, jnp.float32)
    return resample(image, Box(left=0, top=0, width=width, height=height), size)


def _contract(letters: str, left: Num[Array, "..."], right: Num[Array, "..."]) -> Array:
    """An ``einsum`` whose products are not rounded to bfloat16 or TF32."""
    return jnp.einsum(letters, left, right, precision=jax.lax.Precision.HIGHEST)


def _to_levels(values: Float[Array, "h w 3"]) -> Float[Array, "h w 3"]:
    return jnp.floor(values + 0.5)
