"""Images that were edited, claim to be huge, or are called something else."""

import struct
import zlib

import numpy as np
import pytest
from data.pictures import encode, pixels
from hypothesis import strategies as st
from torture.fuzz import edited, fuzz

from rdc_jax.data.decode import UnreadableImage, decode_picture
from rdc_jax.data.open import open_source

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


@pytest.mark.filterwarnings("ignore")  # PIL's own, on odd metadata
@fuzz(st.sampled_from(FORMATS).flatmap(lambda f: edited(encode(pixels(6), f))))
def test_images(content):
    try:
        image = np.array(decode_picture(content, where="x.img"))
    except UnreadableImage as error:
        reason = error.reason
    else:
        reason = "readable"
        assert image.dtype == np.uint8 and image.shape[2] == 3 and image.size
    assert reason and "\n" not in reason


def _chunk(kind, data):
    crc = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + crc


HUGE = {
    "GIF canvas": b"GIF89a" + struct.pack("<HH", 65535, 65535) + bytes(3) + b";",
    "BMP": b"BM"
    + struct.pack("<IIIIiiHHIIiiII", 54, 0, 54, 40, 60000, 60000, 1, 24, *[0] * 6),
    "PPM": b"P6\n99999999 99999999\n255\n" + bytes(12),
    "one long row": b"P6\n2000000000 1\n255\n" + bytes(12),
    "PNG text that unpacks to a gigabyte": b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(2**26), 9))
    + _chunk(b"IDAT", zlib.compress(bytes(4)))
    + _chunk(b"IEND", b""),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HUGE)
def test_huge_images_of_every_format_are_refused(name):
    with pytest.raises(UnreadableImage) as caught:
        decode_picture(HUGE[name], where="x.img")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".jpg", ".gif", ".tif"])
def test_a_wrong_extension_is_no_matter(tmp_path, suffix):
    path = tmp_path / "set" / "ant" / f"a{suffix}"
    path.parent.mkdir(parents=True)
    path.write_bytes(encode(pixels(3), "PNG"))
    source = open_source(str(tmp_path / "set"))
    np.testing.assert_array_equal(source.image(0), pixels(3))
