"""One pass of a network over a data set, kept on disk."""

import itertools
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Shaped

from rdc_jax.data import store
from rdc_jax.data.pixels import PixelCache, cache_name
from rdc_jax.runtime.progress import Progress

FeatureFn = Callable[..., Float[Array, "b ..."]]


def feature_cache(
    pixels: PixelCache,
    feature_fn: FeatureFn,
    *,
    weights_fingerprint: str,
    transform: str,
    cache_dir: str | os.PathLike[str],
    batch_size: int = 256,
    sharding: jax.sharding.Sharding | None = None,
    beside: Sequence[Shaped[np.ndarray, " n"]] = (),
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
      beside: Arrays of a number an image, which ``feature_fn`` takes after the images.

    Returns:
      The features, memory-mapped and read-only.
    """
    inputs = (pixels.images, *beside)
    shapes = [jax.ShapeDtypeStruct((batch_size, *x.shape[1:]), x.dtype) for x in inputs]
    out = jax.eval_shape(feature_fn, *shapes)
    fields = {
        "images": pixels.fingerprint,
        "weights": weights_fingerprint,
        "transform": transform,
        "dtype": out.dtype.name,
        "backend": jax.default_backend(),
    }

    def compute(start: int) -> Array:
        rows = [x[start : start + batch_size] for x in inputs]
        batch = [np.zeros(x.shape, x.dtype) for x in shapes]
        for whole, part in zip(batch, rows, strict=True):
            whole[: len(part)] = part
        return feature_fn(*jax.device_put(batch, sharding))[: len(rows[0])]

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
