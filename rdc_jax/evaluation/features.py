"""One pass of a model over a data set."""

import functools
import logging
import pathlib
import time

import jax
import numpy as np
from jaxtyping import Float32

from rdc_jax.data.features import feature_cache
from rdc_jax.data.pixels import PixelCache
from rdc_jax.methods.views import Views, compiled, feature_fn
from rdc_jax.models.model import Model
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.processes import make_layout

_log = logging.getLogger(__name__)

_IMAGES_A_DEVICE = 64


def embed(
    pixels: PixelCache,
    model: Model,
    views: Views | None,
    size: int,
    cache_dir: pathlib.Path,
) -> Float32[np.ndarray, "n ..."]:
    """Give the features of all images, from the cache where they are there already.

    What the features are a function of is named here and nowhere else: the images, the
    weights, the transform, and what is taken of the network.

    Args:
      pixels: The images.
      model: The network.
      views: What is taken of an image and of the network; None: the maps before
        pooling.
      size: Edge of the network's input in pixels.
      cache_dir: Folder for the features.

    Returns:
      The features, memory-mapped.

    Raises:
      UserError: Features are not finite.
    """
    began = time.monotonic()
    layout = make_layout(jax.local_devices())
    described = views.described if views else "maps"
    fingerprint, edge = model.fingerprint, model.preprocessing.edge_at(size)
    transform = f"test transform: resize to {edge}, crop {size}"
    if described:  # A file of its own for each, so that a run may use several.
        fingerprint = checksums.of_json([fingerprint, described])
        transform = f"{transform}; {described}"

    embed = feature_fn(views, size)
    if not model.on_host:
        # Each device by itself: on CPU the network loops over a few images at a time,
        # and for such a loop a batch that is split would be brought together on every
        # device.
        embed = jax.shard_map(
            embed,
            mesh=layout.mesh,
            in_specs=(layout.replicated.spec, layout.sharded.spec),
            out_specs=layout.sharded.spec,
            check_vma=False,
        )
    on_all = jax.device_put(model, layout.replicated)
    features = feature_cache(
        pixels,
        functools.partial(compiled(embed, model), on_all),
        weights_fingerprint=fingerprint,
        transform=transform,
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
