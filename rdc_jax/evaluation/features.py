"""One pass of a model over a data set."""

import functools
import logging
import pathlib
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, UInt8

from rdc_jax.data.features import feature_cache
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.transforms import resize_size, test_batch
from rdc_jax.evaluation.options import Options
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.processes import make_layout

_log = logging.getLogger(__name__)

_IMAGES_A_DEVICE = 64


def embed(
    pixels: PixelCache,
    model: Model,
    inputs: str,
    options: Options,
    cache_dir: pathlib.Path,
) -> Float32[np.ndarray, "n ..."]:
    """Give the features of all images, from the cache where they are there already.

    What the features are a function of is named here and nowhere else: the images, the
    weights, the transform, and what is taken of the network.

    Args:
      pixels: The images.
      model: From normalised images to features.
      inputs: ``features``, or the ``maps`` before pooling.
      options: Of the run.
      cache_dir: Of the features.

    Returns:
      The features, memory-mapped.

    Raises:
      UserError: Features are not finite.
    """
    size, began = options.image_size, time.monotonic()
    layout = make_layout(jax.local_devices())
    on_all = jax.device_put(model, layout.replicated)
    embed_images = feature_fn(inputs)

    def features_of(model: Model, images: UInt8[Array, "b h w 3"]) -> Array:
        return embed_images(model, test_batch(images, size))

    # Each device by itself: on CPU the network loops over a few images at a time, and
    # for such a loop a batch that is split would be brought together on every device.
    on_devices = jax.shard_map(
        features_of,
        mesh=layout.mesh,
        in_specs=(layout.replicated.spec, layout.sharded.spec),
        out_specs=layout.sharded.spec,
        check_vma=False,
    )
    features = feature_cache(
        pixels,
        functools.partial(jax.jit(on_devices), on_all),
        weights_fingerprint=model.fingerprint,
        transform=f"test transform: resize to {resize_size(size)}, crop {size}"
        + (f"; {inputs}" if inputs != "features" else ""),
        cache_dir=cache_dir,
        batch_size=_IMAGES_A_DEVICE * jax.local_device_count(),
        sharding=layout.sharded,
    )
    finite_n = np.isfinite(features).reshape(len(features), -1).all(axis=1)
    if broken := np.flatnonzero(~finite_n).tolist():
        raise UserError(
            f"the model gives features that are not finite for {len(broken)} of "
            f"{len(features)} images of {pixels.name}: its weights are damaged; use "
            "another checkpoint"
        )
    _log.info(
        "%s: features of %d images in %.1f s",
        *(pixels.name, len(features), time.monotonic() - began),
    )
    return features


def feature_fn(inputs: str) -> Callable[[Model, Array], Array]:
    """Give what makes the inputs of methods from normalised images, each by itself."""
    return _maps if inputs == "maps" else Model.embed


def _maps(model: Model, images: Array) -> Array:
    """The output of the network's last block."""
    _, named, _ = model.apply(images)
    blocks = [name for name in named if name.startswith("block")]
    if not blocks:
        raise UserError(f"the network {model.arch} has no maps: take another method")
    return named[max(blocks)].astype(jnp.float32)
