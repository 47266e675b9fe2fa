"""One pass of the backbone over a data set."""

import functools
import logging
import pathlib
import time

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float32, UInt8

from rdc_jax.data.features import feature_cache
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.transforms import resize_size, test_batch
from rdc_jax.evaluation.options import Options
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

_IMAGES_A_DEVICE = 64


def embed(
    pixels: PixelCache, backbone: Model, options: Options, cache_dir: pathlib.Path
) -> Float32[np.ndarray, "n d"]:
    """Give the features of all images, from the cache where they are there already.

    Args:
      pixels: The images.
      backbone: From normalised images to features.
      options: Of the run.
      cache_dir: Of the features.

    Returns:
      The features, memory-mapped.

    Raises:
      UserError: Features are not finite.
    """
    size, began = options.image_size, time.monotonic()
    mesh = Mesh(np.array(jax.local_devices()), ("image",))
    model = jax.device_put(backbone, NamedSharding(mesh, PartitionSpec()))

    def features_of(model: Model, images: UInt8[Array, "b h w 3"]) -> Array:
        return model.embed(test_batch(images, size))

    # Each device by itself: on CPU the network loops over a few images at a time, and
    # for such a loop a batch that is split would be brought together on every device.
    split = PartitionSpec("image")
    on_devices = jax.shard_map(
        features_of,
        mesh=mesh,
        in_specs=(PartitionSpec(), split),
        out_specs=split,
        check_vma=False,
    )
    features = feature_cache(
        pixels,
        functools.partial(jax.jit(on_devices), model),
        weights_fingerprint=backbone.fingerprint,
        transform=f"test transform: resize to {resize_size(size)}, crop {size}",
        cache_dir=cache_dir,
        batch_size=_IMAGES_A_DEVICE * jax.local_device_count(),
        sharding=NamedSharding(mesh, split),
    )
    if broken := np.flatnonzero(~np.isfinite(features).all(axis=1)).tolist():
        raise UserError(
            f"the backbone gives features that are not finite for {len(broken)} of "
            f"{len(features)} images of {pixels.name}: its weights are damaged; use "
            "another checkpoint"
        )
    _log.info(
        "%s: features of %d images in %.1f s",
        *(pixels.name, len(features), time.monotonic() - began),
    )
    return features
