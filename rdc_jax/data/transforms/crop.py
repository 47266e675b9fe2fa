"""The random crop of ``RandomResizedCrop``, without data-dependent shapes."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rdc_jax.data.transforms.resample import Box

SCALE = (0.08, 1.0)  # share of the image's area
RATIO = (3 / 4, 4 / 3)  # width over height
TRIES = 10

Aspect = float | Float[Array, ""]


def sample_crop(
    key: PRNGKeyArray,
    height: int,
    width: int,
    *,
    aspect: Aspect = 1.0,
    scale: tuple[float, float] = SCALE,
) -> Box:
    """Draw a crop by torchvision's rule and defaults.

    Area and ratio are drawn ten times at once and the first pair that fits is taken;
    if none fits, the largest central crop of an allowed ratio. ``aspect`` is the width
    of a pixel over its height: an image squeezed into a square from ``w0`` x ``h0`` has
    pixels of aspect ``w0 / h0``, and area and ratio are those of the original image.
    ``scale`` is the smallest and largest share of the image's area.

    Examples:
      >>> sample = jax.jit(sample_crop, static_argnums=(1, 2))
      >>> box = sample(jax.random.key(0), 32, 32)
      >>> int(box.left + box.width) <= 32
      True
    """
    # One draw for everything: compiling a generator costs more than the rest.
    unit = jax.random.uniform(key, (2 * TRIES + 2,), jnp.float32)
    crop_width, crop_height, found = _first_fit(
        unit[:TRIES], unit[TRIES:-2], height, width, aspect, scale
    )
    # Otherwise the largest crop whose ratio is allowed.
    ratio = jnp.asarray(width / height * aspect, jnp.float32)
    full_width = jnp.round(width * jnp.minimum(1.0, RATIO[1] / ratio))
    full_height = jnp.round(height * jnp.minimum(1.0, ratio / RATIO[0]))
    crop_width = jnp.where(found, crop_width, full_width.astype(jnp.int32))
    crop_height = jnp.where(found, crop_height, full_height.astype(jnp.int32))
    room = jnp.stack([width - crop_width, height - crop_height])
    corner = jnp.floor(unit[-2:] * (room + 1)).astype(jnp.int32)
    left, top = jnp.where(found, corner, room // 2)
    return Box(left=left, top=top, width=crop_width, height=crop_height)


def _first_fit(
    unit_area: Float[Array, " t"],
    unit_ratio: Float[Array, " t"],
    height: int,
    width: int,
    aspect: Aspect,
    scale: tuple[float, float],
) -> tuple[Int[Array, ""], Int[Array, ""], Bool[Array, ""]]:
    """Width and height of the first draw that fits, and whether one did."""
    area_t = height * width * (scale[0] + unit_area * (scale[1] - scale[0]))
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    ratio_t = jnp.exp(low + unit_ratio * (high - low)) / aspect
    width_t = jnp.round(jnp.sqrt(area_t * ratio_t)).astype(jnp.int32)
    height_t = jnp.round(jnp.sqrt(area_t / ratio_t)).astype(jnp.int32)
    fits_t = (width_t > 0) & (width_t <= width) & (height_t > 0) & (height_t <= height)
    first = jnp.argmax(fits_t)
    return width_t[first], height_t[first], fits_t[first]
