"""Image bytes to RGB pictures: every common format, and a clear reason otherwise.

Choices that change pixels:

* Transparency is laid on white. Colours under transparent pixels are arbitrary
  (often black), and most cut-outs are made for a white page.
* 16-bit greyscale is scaled to 8 bits, not clipped.
* The EXIF orientation is applied; a damaged EXIF block is ignored.
* Of an animation the first frame is taken.
* 32-bit integer and floating-point pixels are refused: they have no agreed range.
"""

import io
import pathlib

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from rdc_jax.data.names import printable
from rdc_jax.runtime.errors import UserError

# Part of every source's fingerprint: raise it when decoded pixels change.
DECODE_VERSION = 1

EXTENSIONS = frozenset(
    [".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"]
)
# A closed list: some of PIL's other readers start external programs.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
_ORIENTATION = 0x0112  # EXIF tag


class UnreadableImage(UserError):
    """An image that cannot be decoded.

    Attributes:
      where: The file or record.
      reason: What is wrong with it.
    """

    def __init__(self, where: str, reason: str):
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}; replace the image or remove it"


def decode_picture(data: bytes, *, where: str) -> Image.Image:
    """Decode an encoded image to an upright RGB picture of 8 bits a channel.

    Resizing the picture rather than an array saves copies that would hold Python's
    lock. ``where`` is the file or record, for messages.

    Raises:
      UnreadableImage: The bytes are truncated, damaged, too large or no image.
    """
    if not data:
        raise UnreadableImage(where, "empty file")
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if min(image.size) < 1:
                raise ValueError(f"no pixels ({image.width}x{image.height})")
            limit = Image.MAX_IMAGE_PIXELS  # PIL only warns up to twice its value.
            if limit is not None and image.width * image.height > limit:
                raise Image.DecompressionBombError
            image.load()
            return _to_rgb(_upright(image), image.format)
    except Exception as error:  # PIL's readers raise nearly anything on bad bytes
        raise UnreadableImage(where, _reason(error)) from error


def read_picture(path: pathlib.Path) -> Image.Image:
    """Read and decode one image file; see ``decode_picture``."""
    where = printable(str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableImage(where, error.strerror or str(error)) from error
    return decode_picture(data, where=where)


def _upright(image: Image.Image) -> Image.Image:
    try:
        turned = image.getexif().get(_ORIENTATION, 1) != 1
    except Exception:  # the pixels are fine even where the metadata is not
        return image
    return ImageOps.exif_transpose(image) if turned else image


def _to_rgb(image: Image.Image, file_format: str | None) -> Image.Image:
    mode = image.mode
    if mode.startswith("I;16") or (mode == "I" and file_format in ("PNG", "PPM")):
        grey_hw = (np.asarray(image).astype(np.uint32) + 128) // 257
        return Image.fromarray(grey_hw.astype(np.uint8)).convert("RGB")
    if mode in ("I", "F"):
        raise ValueError(f"32-bit pixels (mode {mode}) have no agreed range")
    if mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image if image.mode == "RGB" else image.convert("RGB")


def _reason(error: Exception) -> str:
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    if isinstance(error, bombs):
        return (
            f"more than {Image.MAX_IMAGE_PIXELS:,} pixels, refused as a possible bomb"
        )
    if isinstance(error, UnidentifiedImageError):
        return f"not an image of a known format ({', '.join(_FORMATS)})"
    if "truncated" in str(error).lower():
        return "truncated"
    return f"damaged ({type(error).__name__}: {' '.join(str(error).split())})"
