"""Pillow's ``ImageEnhance`` in 8-bit steps: brightness, contrast and colour.

Images are whole numbers from 0 to 255 in float32. A factor of 1 changes nothing, 0
gives the degenerate image (black, flat grey, greyscale), above 1 extrapolates.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Factor = float | Float[Array, ""]


def brightness(image: Float[Array, "h w 3"], factor: Factor) -> Float[Array, "h w 3"]:
    """Blend with black.

    Examples:
      >>> brightness(jnp.full((1, 1, 3), 101, jnp.float32), 0.5)[0, 0, 0]
      Array(50., dtype=float32)
    """
    return _blend(jnp.zeros_like(image), image, factor)


def contrast(image: Float[Array, "h w 3"], factor: Factor) -> Float[Array, "h w 3"]:
    """Blend with the rounded mean of the greyscale image."""
    grey_hw = _greyscale(image)
    mean = (2 * grey_hw.sum() + grey_hw.size) // (2 * grey_hw.size)
    return _blend(jnp.full_like(image, mean), image, factor)


def colour(image: Float[Array, "h w 3"], factor: Factor) -> Float[Array, "h w 3"]:
    """Blend with the greyscale image."""
    grey_hw1 = _greyscale(image).astype(jnp.float32)[:, :, None]
    return _blend(jnp.broadcast_to(grey_hw1, image.shape), image, factor)


def _blend(
    low: Float[Array, "h w 3"], image: Float[Array, "h w 3"], factor: Factor
) -> Float[Array, "h w 3"]:
    """Interpolate or extrapolate, clip, and drop the fraction, in Pillow's order."""
    return jnp.floor(jnp.clip(low + factor * (image - low), 0.0, 255.0))


def _greyscale(image: Float[Array, "h w 3"]) -> Int[Array, "h w"]:
    """ITU-R 601-2 luma in Pillow's 16-bit fixed point."""
    red, green, blue = (image[:, :, c].astype(jnp.int32) for c in range(3))
    return (19595 * red + 38470 * green + 7471 * blue + 2**15) >> 16
