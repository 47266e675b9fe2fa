"""One pass of a network over a data set, kept on disk."""

import itertools
import math
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, UInt8

from rdc_jax.data import store
from rdc_jax.data.pixels import PixelCache, cache_name
from rdc_jax.runtime.progress import Progress

FeatureFn = Callable[[UInt8[Array, "b h w 3"]], Float[Array, "b ..."]]


def feature_cache(
    pixels: PixelCache,
    feature_fn: FeatureFn,
    *,
    weights_fingerprint: str,
    transform: str,
    cache_dir: str | os.PathLike[str],
    batch_size: int = 256,
    sharding: jax.sharding.Sharding | None = None,
) -> Float32[np.ndarray, "n ..."]:
    """Features of every image of a data set, computed once and kept.

    Kept features are used again when the images, the weights, the transform, the dtype
    and the backend are the same, and computed again otherwise.

    Args:
      pixels: The images.
      feature_fn: From raw images to features: test transform and network, jitted. It
        sees one batch shape only (the last batch is padded), and must treat each image
        by itself.
      weights_fingerprint: Identity of the network's weights.
      transform: Says in words what is done before the network, with its sizes, and the
        dtype it computes in where that is not the features' own.
      cache_dir: Folder of the cache; made where it is missing.
      batch_size: Images at a time.
      sharding: Where to put a batch; by default, on one device.

    Returns:
      The features, memory-mapped and read-only.
    """
    shape = (batch_size, *pixels.images.shape[1:])
    out = jax.eval_shape(feature_fn, jax.ShapeDtypeStruct(shape, np.uint8))
    fields = {
        "images": pixels.fingerprint,
        "weights": weights_fingerprint,
        "transform": transform,
        "dtype": out.dtype.name,
        "backend": jax.default_backend(),
    }

    def compute(start: int) -> Array:
        rows = pixels.images[start : start + batch_size]
        batch = np.zeros(shape, np.uint8)
        batch[: len(rows)] = rows
        return feature_fn(jax.device_put(batch, sharding))[: len(rows)]

    def build(notes: dict[str, Any]) -> Iterator[Float32[np.ndarray, "b ..."]]:
        batches = map(compute, range(0, len(pixels), batch_size))
        with Progress(len(pixels), unit="images", every=math.inf) as bar:
            bar.show(f"features of {pixels.name} {pixels.split}")
            # In pairs: the device has its next batch before this one is fetched.
            for computed, _ in itertools.pairwise(itertools.chain(batches, [None])):
                feat_bd = np.asarray(computed, np.float32)
                yield feat_bd
                bar.advance(len(feat_bd))

    size = f"{pixels.images.shape[1]}px"
    name = cache_name(pixels.name, pixels.split, size, weights_fingerprint[:12])
    path = pathlib.Path(cache_dir) / name
    return store.cached_array(path, fields=fields, build=build).array
