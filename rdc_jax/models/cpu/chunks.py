"""A batch of images a few at a time: loops that reuse memory the size of a cache.

On CPU, to write fresh memory many times the size of the images costs more than the
products that are made of it.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array, lax

PyTree = Any


def chunk_length(images: int, image_bytes: int, budget: int) -> int:
    """How many images to take at a time.

    Args:
      images: Number of images in the batch.
      image_bytes: Bytes that one image needs.
      budget: Bytes that are free.

    Returns:
      As many as fit, or a few less: a divisor of the batch, if one is near, saves the
      compilation of a remainder.

    >>> chunk_length(64, image_bytes=10, budget=170), chunk_length(7, 1, 4)
    (16, 4)
    """
    most = max(1, min(images, budget // max(image_bytes, 1)))
    return next((n for n in range(most, most // 2, -1) if images % n == 0), most)


def chunked_map(fn: Callable[[Array], PyTree], x: Array, chunk: int) -> PyTree:
    """``jax.vmap(fn)``, a chunk at a time."""
    if chunk >= len(x):
        return jax.vmap(fn)(x)
    return lax.map(fn, x, batch_size=chunk)


def chunked_sum(
    fn: Callable[..., Array], batch: tuple[Array, ...], chunk: int
) -> Array:
    """What ``fn`` makes of the arrays of each chunk, added up."""
    images = len(batch[0])
    whole = images // chunk * chunk
    if whole == chunk == images:
        return fn(*batch)
    chunks = [a[:whole].reshape(-1, chunk, *a.shape[1:]) for a in batch]
    rest = fn(*(a[whole:] for a in batch))
    total, _ = lax.scan(lambda total, x: (total + fn(*x), None), rest, chunks)
    return total
