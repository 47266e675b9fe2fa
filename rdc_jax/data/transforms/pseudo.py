"""Pseudo-samples: random versions of images that are normalised already.

What Yeh et al. (2020) make their pseudo queries by, and Wang and Deng (2021) fine-tune
on: in this order gamma, erasing, a shuffle of the colours, a flip, quarter turns, each
or not by chance. The former's code subtracts the minimum twice in the gamma, which
darkens the image; here it is as the latter has it.
"""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rdc_jax.data.transforms.resample import Box

GAMMA = (1.0, 1.5)
CHANCE = (0.3, 0.5, 0.3, 0.5, 0.5)  # of each of the five, in order
ERASED = (0.02, 0.33)  # share of the image's area
RATIO = (0.3, 3.3)  # height over width of what is erased
TRIES = 10

_ORDERS = tuple(itertools.permutations(range(3)))

Image = Float[Array, "size size 3"]


class Change(NamedTuple):
    """What is random in one pseudo-sample.

    Attributes:
      gamma: Exponent; 1 leaves the image as it is.
      erased: What is filled with the mean colour; no pixel: nothing.
      order: Which of the six orders of the colours; the first is the image's own.
      flip: 0: none, 1: top and bottom change places, 2: left and right do.
      turns: By 90 degrees, counter-clockwise.
    """

    gamma: Float[Array, ""]
    erased: Box
    order: Int[Array, ""]
    flip: Int[Array, ""]
    turns: Int[Array, ""]


def sample_change(key: PRNGKeyArray, size: int) -> Change:
    """Draw what happens to an image with edges of ``size`` pixels."""
    # One draw for everything: compiling a generator costs more than the rest.
    unit = jax.random.uniform(key, (11 + 2 * TRIES,), jnp.float32)
    gamma, erased, shuffled, flipped, turned = unit[:5] < jnp.asarray(CHANCE)
    exponent = GAMMA[0] + unit[5] * (GAMMA[1] - GAMMA[0])
    return Change(
        gamma=jnp.where(gamma, exponent, 1.0),
        erased=_sample_box(unit[9:], erased, size),
        order=jnp.where(shuffled, _one_of(len(_ORDERS), unit[6]), 0),
        flip=jnp.where(flipped, 1 + _one_of(2, unit[7]), 0),
        turns=jnp.where(turned, 1 + _one_of(3, unit[8]), 0),
    )


def change(image: Image, drawn: Change) -> Image:
    """Give a version of a normalised, square image."""
    image = _corrected(image, drawn.gamma)
    image = jnp.where(_inside(drawn.erased, image), image.mean((0, 1)), image)
    image = image[:, :, jnp.asarray(_ORDERS)[drawn.order]]
    flips = [image, image[::-1], image[:, ::-1]]
    image = jnp.select([drawn.flip == i for i in range(3)], flips)
    turned = [jnp.rot90(image, turns) for turns in range(4)]
    return jnp.select([drawn.turns == turns for turns in range(4)], turned)


def pseudo_sample(key: PRNGKeyArray, image: Image) -> Image:
    """Draw a version of a normalised, square image."""
    return change(image, sample_change(key, image.shape[0]))


def pseudo_samples(
    key: PRNGKeyArray, images: Float[Array, "s size size 3"], versions: int
) -> Float[Array, "s {versions} size size 3"]:
    """Draw versions of each image, each by a key of its own.

    Examples:
      >>> images = jnp.zeros((2, 8, 8, 3))
      >>> pseudo_samples(jax.random.key(0), images, 4).shape
      (2, 4, 8, 8, 3)

    Args:
      key: Random key of the task and the step.
      images: Normalised.
      versions: How many of each image.
    """
    keys = jax.random.split(key, (images.shape[0], versions))
    return jax.vmap(jax.vmap(pseudo_sample, (0, None)))(keys, images)


def pseudo_set(
    key: PRNGKeyArray, images: Float[Array, "s size size 3"], versions: int
) -> Float[Array, "s {versions} size size 3"]:
    """As ``pseudo_samples``, but the first version of each image is the image."""
    others = pseudo_samples(key, images, versions - 1)
    return jnp.concatenate([images[:, None], others], axis=1)


def versions_of(pseudo: int, support_size: int) -> int:
    """Versions of each image in a set of about ``pseudo`` new ones, with itself.

    Examples:
      >>> versions_of(75, 25), versions_of(75, 5)  # 5-way, 5 shots and 1
      (4, 16)
    """
    return pseudo // support_size + 1


def _one_of(count: int, unit: Float[Array, ""]) -> Int[Array, ""]:
    """A number below ``count``, all as likely."""
    return jnp.floor(unit * count).astype(jnp.int32)


def _corrected(image: Image, gamma: Float[Array, ""]) -> Image:
    """Raise to a power between the image's darkest and brightest value."""
    low, high = image.min(), image.max()
    span = jnp.where(high > low, high - low, 1.0)
    corrected = ((image - low) / span) ** gamma * span + low
    return jnp.where(gamma == 1.0, image, corrected)


def _sample_box(unit: Float[Array, " u"], wanted: Bool[Array, ""], size: int) -> Box:
    """The first of ten draws that is smaller than the image, as torchvision's."""
    unit_area, unit_ratio = unit[2 : 2 + TRIES], unit[2 + TRIES :]
    area_t = size**2 * (ERASED[0] + unit_area * (ERASED[1] - ERASED[0]))
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    ratio_t = jnp.exp(low + unit_ratio * (high - low))
    height_t, width_t = (
        jnp.round(jnp.sqrt(edge)).astype(jnp.int32)
        for edge in (area_t * ratio_t, area_t / ratio_t)
    )
    fits_t = (height_t < size) & (width_t < size)
    first = jnp.argmax(fits_t)
    kept = wanted & fits_t.any()
    height, width = (
        jnp.where(kept, edge_t[first], 0) for edge_t in (height_t, width_t)
    )
    return Box(
        left=jnp.floor(unit[0] * (size - width + 1)).astype(jnp.int32),
        top=jnp.floor(unit[1] * (size - height + 1)).astype(jnp.int32),
        width=width,
        height=height,
    )


def _inside(box: Box, image: Image) -> Bool[Array, "size size 1"]:
    rows, columns = (jnp.arange(edge) for edge in image.shape[:2])
    in_rows = (rows >= box.top) & (rows < box.top + box.height)
    in_columns = (columns >= box.left) & (columns < box.left + box.width)
    return (in_rows[:, None] & in_columns[None, :])[:, :, None]
