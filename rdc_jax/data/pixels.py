"""Every image decoded once, at one size, in a memory-mapped array."""

import dataclasses
import logging
import math
import os
import pathlib
import re
from collections.abc import Sequence

import numpy as np
import PIL
from jaxtyping import Float32, Int32, Int64, UInt8
from PIL import Image

from rdc_jax.data import store
from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.parallel import threaded_map
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.progress import Progress

_log = logging.getLogger(__name__)

_CHUNK = 32  # images a thread decodes at a time


@dataclasses.dataclass(frozen=True, eq=False)
class PixelCache:
    """Decoded images of one size with their labels.

    Attributes:
      name: Of the data set.
      split: Of the data set.
      class_names: One name a class.
      images: RGB, memory-mapped where they come from ``pixel_cache``.
      labels: Index into ``class_names``.
      aspects: Width over height of each image before it was squeezed into a square.
      rows: Each image's row in the image set, for its ``locate``.
      fingerprint: Identity of all of the above.
    """

    name: str
    split: str
    class_names: tuple[str, ...]
    images: UInt8[np.ndarray, "n size size 3"]
    labels: Int32[np.ndarray, "n"]
    aspects: Float32[np.ndarray, "n"]
    rows: Int64[np.ndarray, "n"]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.labels)


def pixel_cache(
    source: ImageSet,
    size: int,
    cache_dir: str | os.PathLike[str],
    *,
    skip_unreadable: bool = False,
) -> PixelCache:
    """Decode and resize images, or open the cache that holds them already.

    Images are squeezed into a square by PIL's bilinear filter, without keeping their
    aspect, in one thread a core and in bounded memory. Progress is shown on a terminal.

    Images that cannot be read are left out of the cache on disk, and noted in it. They
    are an error here unless ``skip_unreadable``, which then needs no second decoding.

    Args:
      source: The images.
      size: Edge of the square in pixels.
      cache_dir: Folder of the cache; made where it is missing.
      skip_unreadable: Leave unreadable images and their labels out, with a warning.
    """
    fields = {
        "source": source.fingerprint(),
        "size": size,
        "resize": f"bilinear, Pillow {PIL.__version__}",
    }
    path = pathlib.Path(cache_dir) / cache_name(source.name, source.split, f"{size}px")

    def build(writer: store.Writer) -> None:
        _decode(source, size, writer)
        if source.fingerprint() != fields["source"]:  # Reads changed files only.
            raise UserError(
                f"the images of {source.name} changed while they were read: run the "
                "same command when they are all there"
            )

    stored = store.cached_array(path, fields=fields, build=build)
    if unreadable := stored.extra["unreadable"]:
        if not skip_unreadable:
            raise _unreadable_error(source, unreadable)
        _log.warning(
            "%s: %d of %d images cannot be read and are left out, the first of them %s",
            *(source.name, len(unreadable), len(source), source.locate(unreadable[0])),
        )
    rows = np.delete(np.arange(len(source)), unreadable)
    return PixelCache(
        name=source.name,
        split=source.split,
        class_names=source.class_names,
        images=stored.array,
        labels=source.labels[rows],
        aspects=np.array(stored.extra["aspects"], np.float32),
        rows=rows,
        fingerprint=checksums.of_json(fields),
    )


def cache_name(*parts: str) -> str:
    """A file name that says what is cached.

    >>> cache_name("tfds:eurosat/rgb", "test", "84px")
    'tfds_eurosat_rgb-test-84px'
    """
    return "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts)


def _decode(source: ImageSet, size: int, writer: store.Writer) -> None:
    """Append every readable image to the store; note the others."""
    starts = range(0, len(source), _CHUNK)
    chunks = (range(i, min(i + _CHUNK, len(source))) for i in starts)
    aspects: list[float] = []
    unreadable: list[int] = []
    with Progress(len(source), unit="images", every=math.inf) as bar:
        bar.show(f"decoding {source.name} {source.split}")
        for images, shapes, broken in threaded_map(
            lambda chunk: _decode_chunk(source, size, chunk), chunks, batch=1
        ):
            aspects += [width / height for width, height in shapes]
            unreadable += broken
            if len(images):
                writer.append(images)
            bar.advance(len(images) + len(broken))
    if not aspects:
        raise _unreadable_error(source, unreadable)
    writer.extra |= {"aspects": aspects, "unreadable": unreadable}


def _decode_chunk(
    source: ImageSet, size: int, chunk: Sequence[int]
) -> tuple[UInt8[np.ndarray, "b size size 3"], list[tuple[int, int]], list[int]]:
    """Squares, the pictures' widths and heights, and the images that are broken."""
    squares = np.empty((len(chunk), size, size, 3), np.uint8)
    shapes: list[tuple[int, int]] = []
    broken = []
    for i in chunk:
        try:
            picture = source.read(i)
        except UnreadableImage:
            broken.append(i)
            continue
        # Resized as a picture: an array would take copies that hold Python's lock.
        square = picture.resize((size, size), Image.Resampling.BILINEAR)
        squares[len(shapes)] = np.asarray(square)
        shapes.append(picture.size)
    return squares[: len(shapes)], shapes, broken


def _unreadable_error(source: ImageSet, unreadable: list[int]) -> UserError:
    shown = ", ".join(source.locate(i) for i in unreadable[:3])
    more = ", ..." if len(unreadable) > 3 else ""
    return UserError(
        f"{len(unreadable)} of {len(source)} images of {source.name} cannot be read: "
        f"{shown}{more}; see `python -m rdc_jax.data verify`, mend or remove them, or "
        "set skip_unreadable to leave them out"
    )
