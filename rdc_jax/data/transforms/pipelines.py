"""The train and test transforms, for one image and for batches."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray, UInt8, UInt32

from rdc_jax.core import imagenet
from rdc_jax.data.transforms import jitter
from rdc_jax.data.transforms.crop import SCALE, Aspect, sample_crop
from rdc_jax.data.transforms.resample import Box, resample_planes, resize

JITTER = (0.6, 1.4)  # factors of brightness, contrast and colour

_MEAN = np.asarray(imagenet.MEAN, np.float32)
_STD = np.asarray(imagenet.STD, np.float32)

Image = UInt8[Array | np.ndarray, "h w 3"]
Images = UInt8[Array | np.ndarray, "b h w 3"]
Keys = Key[Array, " b"] | UInt32[Array, "b 2"]


def resize_size(size: int) -> int:
    """Edge of the square from which the test transform crops ``size`` pixels.

    Examples:
      >>> resize_size(224), resize_size(84)
      (257, 96)
    """
    return int(1.15 * size)


def normalize(image: Float[Array, "*b h w 3"]) -> Float[Array, "*b h w 3"]:
    """From 0..255 to zero mean and unit deviation by ImageNet's statistics."""
    return (image / 255.0 - _MEAN) / _STD


def between_0_and_1(images: Float[Array, "*b h w 3"]) -> Float[Array, "*b h w 3"]:
    """The inverse of ``normalize``, over 255."""
    return images * _STD + _MEAN


def test_transform(
    image: Image, size: int, edge: int | None = None
) -> Float[Array, "{size} {size} 3"]:
    """Resize to a square of ``edge``, crop the centre, normalise.

    Args:
      image: One image, of any size.
      size: Edge of the result in pixels.
      edge: Of the square; None: ``resize_size(size)``.
    """
    edge = resize_size(size) if edge is None else edge
    resized = resize(image, edge)
    margin = round((edge - size) / 2)
    return normalize(resized[margin : margin + size, margin : margin + size])


class Augmentation(NamedTuple):
    """What is random in the train transform of one image."""

    box: Box
    factors: Float[Array, "3"]  # of brightness, contrast and colour
    mirror: Bool[Array, ""]


def sample_augmentation(
    key: PRNGKeyArray,
    height: int,
    width: int,
    *,
    aspect: Aspect = 1.0,
    scale: tuple[float, float] = SCALE,
) -> Augmentation:
    """Draw the parameters for an image of this size; see ``sample_crop``."""
    key_crop, key_rest = jax.random.split(key)
    unit = jax.random.uniform(key_rest, (4,), jnp.float32)
    return Augmentation(
        box=sample_crop(key_crop, height, width, aspect=aspect, scale=scale),
        factors=JITTER[0] + unit[:3] * (JITTER[1] - JITTER[0]),
        mirror=unit[3] < 0.5,
    )


def augment(
    image: Image, augmentation: Augmentation, size: int
) -> Float[Array, "{size} {size} 3"]:
    """Crop, resize, jitter and mirror; whole numbers from 0 to 255, as float32."""
    result_hcw = resample_planes(image, augmentation.box, size)
    result_hcw = jitter.brightness(result_hcw, augmentation.factors[0])
    result_hcw = jitter.contrast(result_hcw, augmentation.factors[1], axis=1)
    result_hcw = jitter.colour(result_hcw, augmentation.factors[2], axis=1)
    mirrored = jnp.where(augmentation.mirror, result_hcw[:, :, ::-1], result_hcw)
    return jnp.moveaxis(mirrored, 1, 2)


def train_transform(
    key: PRNGKeyArray,
    image: Image,
    size: int,
    *,
    aspect: Aspect = 1.0,
    scale: tuple[float, float] = SCALE,
) -> Float[Array, "{size} {size} 3"]:
    """Random resized crop, brightness, contrast and colour, mirroring, normalise.

    Args:
      key: Random key of this image.
      image: One image, of any size.
      size: Edge of the result in pixels (static).
      aspect: Width over height of one pixel; see ``sample_crop``.
      scale: Smallest and largest share of the image's area (static).

    Returns:
      The normalised image, float32.
    """
    augmentation = sample_augmentation(
        key, *image.shape[:2], aspect=aspect, scale=scale
    )
    return normalize(augment(image, augmentation, size))


@partial(jax.jit, static_argnames=("size", "edge"))
def test_batch(
    images: Images, size: int, edge: int | None = None
) -> Float[Array, "b {size} {size} 3"]:
    """``test_transform`` of each image."""
    return jax.vmap(lambda image: test_transform(image, size, edge))(images)


@partial(jax.jit, static_argnames=("size", "count", "edge"))
def test_views(
    images: Images, size: int, count: int, edge: int | None = None
) -> list[Float[Array, "b _ _ 3"]]:
    """Views of each image: its ``test_transform``; mirrored; uncropped, both ways.

    Args:
      images: Of any size.
      size: Edge of the crop.
      count: The first so many, one batch each.
      edge: Of the uncropped images; None: ``resize_size(size)``.
    """
    edge = resize_size(size) if edge is None else edge
    cropped = test_batch(images, size, edge)
    views = [cropped, cropped[:, :, ::-1]]
    if count > len(views):
        uncropped = jax.vmap(lambda image: normalize(resize(image, edge)))(images)
        views += [uncropped, uncropped[:, :, ::-1]]
    return views[:count]


@partial(jax.jit, static_argnames=("size", "scale"))
def train_batch(
    keys: Keys,
    images: Images,
    size: int,
    *,
    aspect: Aspect | Float[Array, " b"] = 1.0,
    scale: tuple[float, float] = SCALE,
) -> Float[Array, "b {size} {size} 3"]:
    """``train_transform`` of each image under its own key.

    Examples:
      >>> images = jnp.zeros((2, 40, 40, 3), jnp.uint8)
      >>> train_batch(jax.random.split(jax.random.key(0), 2), images, 32).shape
      (2, 32, 32, 3)
    """
    aspects = jnp.broadcast_to(jnp.asarray(aspect, jnp.float32), images.shape[:1])
    return jax.vmap(
        lambda key, image, one: train_transform(
            key, image, size, aspect=one, scale=scale
        )
    )(keys, images, aspects)
