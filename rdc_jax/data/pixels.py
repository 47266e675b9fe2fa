"""Every image decoded once, at one size, in a memory-mapped array."""

import dataclasses
import logging
import math
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import PIL
from jaxtyping import Float32, Int32, Int64, UInt8

from rdc_jax.data import store
from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.parallel import threaded_map
from rdc_jax.data.squares import Square
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.progress import Progress

_log = logging.getLogger(__name__)

_BATCH = 32  # images that a thread takes at a time


@dataclasses.dataclass(frozen=True, eq=False)
class PixelCache:
    """Decoded images of one size with their labels.

    Attributes:
      name: Of the data set.
      split: Of the data set.
      class_names: One name a class.
      images: RGB, memory-mapped where they come from ``pixel_cache``; or what a network
        makes of each image.
      labels: Index into ``class_names``.
      aspects: Width over height of each image before it was squeezed into a square.
      rows: Each image's row in the image set, for its ``locate``.
      fingerprint: Identity of all of the above.
    """

    name: str
    split: str
    class_names: tuple[str, ...]
    images: UInt8[np.ndarray, "n size size 3"] | Float32[np.ndarray, "n ..."]
    labels: Int32[np.ndarray, "n"]
    aspects: Float32[np.ndarray, "n"]
    rows: Int64[np.ndarray, "n"]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.labels)


def pixel_cache(
    source: ImageSet,
    size: int | Square,
    cache_dir: str | os.PathLike[str],
    *,
    skip_unreadable: bool = False,
) -> PixelCache:
    """Decode and resize images, or open the cache that holds them already.

    In one thread a core and in bounded memory. Progress is shown on a terminal.

    Images that cannot be read are left out of the cache on disk, and noted in it. They
    are an error here unless ``skip_unreadable``, which then needs no second decoding.

    Args:
      source: The images.
      size: How images become squares; a number: squeezed to that edge by Pillow's
        bilinear filter.
      cache_dir: Folder of the cache; made where it is missing.
      skip_unreadable: Leave unreadable images and their labels out, with a warning.
    """
    square = Square.given(size)
    fields = {"source": source.fingerprint(), **square.fields}
    fields["resize"] += f", Pillow {PIL.__version__}"
    path = pathlib.Path(cache_dir) / cache_name(source.name, source.split, square.name)

    def build(notes: dict[str, Any]) -> Iterator[UInt8[np.ndarray, "1 size size 3"]]:
        yield from _decoded(source, square, notes)
        if source.fingerprint() != fields["source"]:  # Reads changed files only.
            raise UserError(
                f"the images of {source.name} changed while they were read: run the "
                "same command when they are all there"
            )

    images, notes = store.cached_array(path, fields=fields, build=build)
    if unreadable := notes["unreadable"]:
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
        images=images,
        labels=source.labels[rows],
        aspects=np.array(notes["aspects"], np.float32),
        rows=rows,
        fingerprint=checksums.of_json(fields),
    )


def cache_name(*parts: str) -> str:
    """A file name that says what is cached.

    >>> cache_name("tfds:eurosat/rgb", "test", "84px")
    'tfds_eurosat_rgb-test-84px'
    """
    return "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts)


def _decoded(
    source: ImageSet, square: Square, notes: dict[str, Any]
) -> Iterator[UInt8[np.ndarray, "1 size size 3"]]:
    """Squares of every readable image; notes their aspects, and the other images."""

    def decode(i: int) -> tuple[UInt8[np.ndarray, "size size 3"], float] | None:
        try:
            picture = source.read(i)
        except UnreadableImage:
            return None
        return square.of(picture), picture.width / picture.height

    aspects: list[float] = []
    unreadable: list[int] = []
    with Progress(len(source), unit="images", every=math.inf) as bar:
        bar.show(f"decoding {source.name} {source.split}")
        everything = threaded_map(decode, range(len(source)), batch=_BATCH)
        for i, decoded in enumerate(everything):
            bar.advance()
            if decoded is None:
                unreadable.append(i)
                continue
            pixels, aspect = decoded
            aspects.append(aspect)
            yield pixels[None]
    if not aspects:
        raise _unreadable_error(source, unreadable)
    notes.update(aspects=aspects, unreadable=unreadable)


def _unreadable_error(source: ImageSet, unreadable: list[int]) -> UserError:
    shown = ", ".join(source.locate(i) for i in unreadable[:3])
    more = ", ..." if len(unreadable) > 3 else ""
    return UserError(
        f"{len(unreadable)} of {len(source)} images of {source.name} cannot be read: "
        f"{shown}{more}; see `python -m rdc_jax.data verify`, mend or remove them, or "
        "set skip_unreadable to leave them out"
    )
