"""The user's folders: labelled pictures by class, loose pictures to classify."""

import io
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from rdc_jax.data.decode import EXTENSIONS, UnreadableImage, read_image
from rdc_jax.data.folder import open_folder
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import printable, sort_key
from rdc_jax.data.parallel import threaded_map
from rdc_jax.runtime.errors import UserError

THUMBNAIL = 160  # pixels of the longer edge
_QUALITY = 80


class Picture(NamedTuple):
    """One picture, decoded.

    Attributes:
      square: Squeezed into a square, as networks of the field see it.
      thumbnail: JPEG bytes in the picture's own shape; empty where none was asked for.
    """

    square: UInt8[np.ndarray, "size size 3"]
    thumbnail: bytes


def open_support(folder: str | os.PathLike[str]) -> ImageSet:
    """Open the labelled pictures, ``folder/<class>/<picture>``.

    Args:
      folder: One folder a class; a class's name is its folder's.

    Returns:
      The pictures, by class and name.

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


def find_queries(path: str | os.PathLike[str]) -> tuple[pathlib.Path, ...]:
    """List the pictures to classify, in sorted order.

    Hidden files and folders are passed over, and linked folders are not entered.

    Args:
      path: A folder, searched with all folders below it, or one picture.

    Returns:
      The picture files.

    Raises:
      UserError: There is no picture.
    """
    root = pathlib.Path(path)
    if root.is_file():
        return (root,)
    if not root.is_dir():
        raise UserError(
            f"{printable(str(root))} is not there: give a folder or one picture"
        )
    found = tuple(_walk(root))
    if not found:
        kinds = " ".join(sorted(EXTENSIONS))
        raise UserError(f"no pictures under {printable(str(root))} ({kinds})")
    return found


def read_pictures(
    paths: tuple[pathlib.Path, ...], size: int, *, thumbnails: bool = False
) -> Iterator[Picture | UnreadableImage]:
    """Decode pictures in threads, a few ahead of the reader.

    Args:
      paths: The files.
      size: Edge of the squares in pixels.
      thumbnails: Whether to make thumbnails too.

    Yields:
      For each path in turn, the picture, or why it cannot be read.
    """

    def read(path: pathlib.Path) -> Picture | UnreadableImage:
        try:
            pixels = read_image(path)
        except UnreadableImage as error:
            return error
        thumbnail = _thumbnail(Image.fromarray(pixels)) if thumbnails else b""
        return Picture(_square(pixels, size), thumbnail)

    return threaded_map(read, paths, batch=8)


def squeeze(
    images: UInt8[np.ndarray, "n h w 3"], size: int
) -> UInt8[np.ndarray, "n size size 3"]:
    """Squeeze decoded pictures into squares, without keeping their aspect.

    >>> squeeze(np.zeros((2, 30, 40, 3), np.uint8), 16).shape
    (2, 16, 16, 3)
    """
    return np.stack([_square(image, size) for image in images])


def display_name(path: pathlib.Path, root: pathlib.Path) -> str:
    """Name a picture by its path below the folder it was found in.

    >>> display_name(pathlib.Path("new/trip/1.jpg"), pathlib.Path("new"))
    'trip/1.jpg'
    """
    return printable(path.name if path == root else str(path.relative_to(root)))


def _square(pixels: np.ndarray, size: int) -> np.ndarray:
    image = Image.fromarray(pixels)
    return np.asarray(image.resize((size, size), Image.Resampling.BILINEAR))


def _walk(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted((f for f in folders if not f.startswith(".")), key=sort_key)
        for name in sorted(files, key=sort_key):
            suffix = os.path.splitext(name)[1].lower()
            if suffix in EXTENSIONS and not name.startswith("."):
                yield pathlib.Path(folder, name)


def _thumbnail(image: Image.Image) -> bytes:
    small = image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()
