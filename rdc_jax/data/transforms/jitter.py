"""Pillow's ``ImageEnhance`` in 8-bit steps: brightness, contrast and colour.

Images are whole numbers from 0 to 255 in float32, with red, green and blue along
``axis``. A factor of 1 changes nothing, 0 gives the degenerate image (black, flat
grey, greyscale), above 1 extrapolates.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Factor = float | Float[Array, ""]
Image = Float[Array, "_ _ _"]


def brightness(image: Image, factor: Factor) -> Image:
    """Blend with black.

    Examples:
      >>> brightness(jnp.full((1, 1, 3), 101, jnp.float32), 0.5)[0, 0, 0]
      Array(50., dtype=float32)
    """
    return _blend(jnp.zeros_like(image), image, factor)


def contrast(image: Image, factor: Factor, *, axis: int = -1) -> Image:
    """Blend with the rounded mean of the greyscale image."""
    grey = _greyscale(image, axis)
    mean = (2 * grey.sum() + grey.size) // (2 * grey.size)
    return _blend(jnp.full_like(image, mean), image, factor)


def colour(image: Image, factor: Factor, *, axis: int = -1) -> Image:
    """Blend with the greyscale image."""
    grey = _greyscale(image, axis).astype(jnp.float32)
    return _blend(jnp.broadcast_to(grey, image.shape), image, factor)


def _blend(low: Image, image: Image, factor: Factor) -> Image:
    """Interpolate or extrapolate, clip, and drop the fraction, in Pillow's order."""
    return jnp.floor(jnp.clip(low + factor * (image - low), 0.0, 255.0))


def _greyscale(image: Image, axis: int) -> Int[Array, "_ _ _"]:
    """ITU-R 601-2 luma in Pillow's 16-bit fixed point; ``axis`` has length 1."""
    red, green, blue = (
        jax.lax.index_in_dim(image, c, axis).astype(jnp.int32) for c in range(3)
    )
    return (19595 * red + 38470 * green + 7471 * blue + 2**15) >> 16
