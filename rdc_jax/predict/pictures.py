"""The user's pictures: where they are, and how they are decoded."""

import io
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from rdc_jax.data.decode import (
    EXTENSIONS,
    UnreadableImage,
    decode_picture,
    read_picture,
)
from rdc_jax.data.folder import is_image, open_folder
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import printable, sort_key
from rdc_jax.data.parallel import threaded_map
from rdc_jax.data.squares import Square
from rdc_jax.runtime.errors import UserError

THUMBNAIL = 160  # pixels of the longer edge
_QUALITY = 80

# A file, an open picture, or decoded pixels.
AnyPicture = pathlib.Path | Image.Image | UInt8[np.ndarray, "h w 3"]
# A square, as the network wants it; and a thumbnail in its own shape: JPEG bytes, empty
# where none was asked for.
Decoded = tuple[UInt8[np.ndarray, "size size 3"], bytes]


def open_support(folder: str | os.PathLike[str]) -> ImageSet:
    """Open the labelled pictures, ``folder/<class>/<picture>``.

    Raises:
      UserError: There are not at least two classes with pictures.
    """
    source = open_folder(folder, name="support")
    if len(source.class_names) < 2:
        raise UserError(
            f"{printable(str(folder))} has one class with pictures, "
            f"{source.class_names[0]!r}: make a folder for each of two or more classes"
        )
    return source


def find_queries(path: str | os.PathLike[str]) -> dict[str, pathlib.Path]:
    """List the pictures to classify, in sorted order.

    A folder is searched with all folders below it. Hidden files and folders are passed
    over, and linked folders are not entered.

    Returns:
      The files, under their paths below the folder.

    Raises:
      UserError: There is no picture.
    """
    root = pathlib.Path(path)
    where = printable(str(root))
    if root.is_file():
        return {root.name: root}
    if not root.is_dir():
        raise UserError(f"{where} is not there: give a folder or one picture")
    paths = {}
    for folder, folders, files in os.walk(root):
        folders[:] = sorted((f for f in folders if not f.startswith(".")), key=sort_key)
        for name in sorted(files, key=sort_key):
            if is_image(name) and not name.startswith("."):
                file = pathlib.Path(folder, name)
                paths[str(file.relative_to(root))] = file
    if not paths:
        raise UserError(f"no pictures under {where} ({' '.join(sorted(EXTENSIONS))})")
    return paths


def read_pictures(
    pictures: Iterable[AnyPicture], size: int | Square, *, thumbnails: bool = False
) -> Iterator[Decoded | UnreadableImage]:
    """Decode pictures in threads, a few ahead of the reader.

    Args:
      pictures: In any form.
      size: What the network's images are cut out of; a number: squeezed to that edge.
      thumbnails: Whether to make thumbnails too.

    Yields:
      For each in turn, what it holds or why it cannot be read.
    """

    def read(picture: AnyPicture) -> Decoded | UnreadableImage:
        try:
            image = _as_rgb(picture)
        except UnreadableImage as error:
            return error
        return Square.given(size).of(image), _thumbnail(image) if thumbnails else b""

    return threaded_map(read, pictures, batch=8)


def as_picture(one: Any) -> AnyPicture:
    """Take a path, a PIL image or an array of pixels; anything else is a ValueError."""
    if isinstance(one, (str, os.PathLike)):
        return pathlib.Path(one)
    if isinstance(one, Image.Image):
        return one
    pixels = np.asarray(one)
    if pixels.ndim == 3 and pixels.shape[-1] == 3 and pixels.dtype == np.uint8:
        return pixels
    raise ValueError(
        "with a backbone, X is a folder, a list of files or PIL images, or pictures "
        "[n, h, w, 3] of uint8; features need backbone=None (one item is "
        f"{pixels.dtype}{list(pixels.shape)})"
    )


def _as_rgb(picture: AnyPicture) -> Image.Image:
    if isinstance(picture, pathlib.Path):
        return read_picture(picture)
    if not isinstance(picture, Image.Image):
        return Image.fromarray(picture)
    if picture.mode == "RGB" and not picture.getexif():
        return picture
    # Transparency and 16 bits are treated as those of a file, by the same code.
    if "transparency" in picture.info:
        picture = picture.convert("RGBA")
    buffer = io.BytesIO()
    ImageOps.exif_transpose(picture).save(buffer, "TIFF")
    return decode_picture(buffer.getvalue(), where="picture")


def _thumbnail(image: Image.Image) -> bytes:
    small = image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()
