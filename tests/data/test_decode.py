"""Decoding: every kind of image becomes upright RGB, or says why it cannot."""

import struct
import warnings
import zlib

import numpy as np
import pytest
from data.pictures import encode, pixels
from PIL import Image, ImageFile

from rdc_jax.data.decode import UnreadableImage, decode_picture, read_picture


def _decode(data):
    return np.array(decode_picture(data, where="x.img"))


def _png(width, height, depth, colour, body):
    """A PNG of any header, also of kinds that PIL does not write."""

    def chunk(kind, data):
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body))
    return b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IEND", b"")


def test_rgb_is_exact_writable_and_uint8():
    image = pixels(0)
    decoded = _decode(encode(image))
    np.testing.assert_array_equal(decoded, image)
    assert decoded.dtype == np.uint8
    assert decoded.flags.writeable


@pytest.mark.parametrize("file_format", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats_agree(file_format):
    np.testing.assert_array_equal(_decode(encode(pixels(1), file_format)), pixels(1))


@pytest.mark.parametrize("file_format", ["JPEG", "WEBP"])
def test_lossy_formats_are_close(file_format):
    image = np.full((16, 16, 3), (200, 30, 90), np.uint8)
    difference = _decode(encode(image, file_format)).astype(int) - image
    assert np.abs(difference).max() <= 8


def test_greyscale_and_bilevel_repeat_their_channel():
    grey = pixels(2)[..., 0]
    decoded = _decode(encode(grey))
    np.testing.assert_array_equal(decoded, np.repeat(grey[..., None], 3, -1))
    black_and_white = _decode(encode(Image.fromarray(grey > 127)))
    assert set(np.unique(black_and_white)) == {0, 255}


def test_transparency_is_laid_on_white():
    rgba = np.zeros((1, 3, 4), np.uint8)
    rgba[0, :, 0] = 255  # red over hidden black, with rising opacity
    rgba[0, :, 3] = [0, 128, 255]
    decoded = _decode(encode(rgba))
    np.testing.assert_array_equal(decoded[0, 0], [255, 255, 255])
    np.testing.assert_allclose(decoded[0, 1], [255, 127, 127], atol=1)
    np.testing.assert_array_equal(decoded[0, 2], [255, 0, 0])


def test_palette_with_and_without_transparency():
    image = Image.fromarray(pixels(3)).quantize(8)
    expected = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(_decode(encode(image)), expected)
    hole = image.getpixel((0, 0))
    decoded = _decode(encode(image, transparency=hole))
    np.testing.assert_array_equal(decoded[0, 0], [255, 255, 255])


def test_cmyk_jpeg_becomes_rgb():
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))  # pure red ink
    red = _decode(encode(image, "JPEG"))[4, 4].astype(int)
    assert red[0] > 200
    assert red[1:].max() < 60


def test_sixteen_bits_are_scaled_not_clipped():
    ramp = np.array([[0, 128, 256, 32768, 65535]], np.uint16)
    decoded = _decode(encode(Image.fromarray(ramp)))[0, :, 0]
    np.testing.assert_array_equal(decoded, [0, 0, 1, 128, 255])


def test_sixteen_bit_colour_keeps_its_range():
    body = b"\0" + struct.pack(">6H", 65535, 32768, 0, 0, 256, 65535)
    decoded = _decode(_png(2, 1, 16, 2, body))
    np.testing.assert_allclose(decoded, [[[255, 128, 0], [0, 1, 255]]], atol=1)


@pytest.mark.parametrize("mode", ["F", "I"])
def test_pixels_without_an_agreed_range_are_refused(mode):
    with pytest.raises(UnreadableImage, match="no agreed range"):
        _decode(encode(Image.new(mode, (4, 4)), "TIFF"))


def test_exif_rotation_is_applied():
    image = np.zeros((8, 16, 3), np.uint8)
    image[:, 8:] = 255  # bright on the right
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned 90 degrees clockwise
    upright = _decode(encode(image, "JPEG", exif=exif, quality=95))
    assert upright.shape == (16, 8, 3)
    assert upright[:6].max() < 40
    assert upright[10:].min() > 215


def test_damaged_exif_costs_the_rotation_not_the_image():
    data = encode(pixels(4), "JPEG", exif=b"Exif\0\0MM\0\x2a\xff\xff\xff\xff")
    with pytest.warns(UserWarning, match="EXIF"):  # PIL tells, and goes on
        assert _decode(data).shape == (12, 10, 3)


def test_animation_gives_its_first_frame():
    first, second = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
    data = encode(first, "GIF", save_all=True, append_images=[second])
    np.testing.assert_array_equal(_decode(data)[0, 0], [255, 0, 0])


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "BMP"])
def test_truncated_files_are_refused(file_format):
    data = encode(pixels(5, (64, 64)), file_format)
    with pytest.raises(UnreadableImage) as caught:
        _decode(data[: len(data) // 2])
    assert str(caught.value).startswith("x.img: ")


def test_truncated_jpeg_is_called_truncated():
    data = encode(pixels(5, (64, 64)), "JPEG")
    with pytest.raises(UnreadableImage) as caught:
        _decode(data[:-400])
    assert caught.value.reason == "truncated"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"this is a text\n" * 40, "not an image"),
        (b"\xff\xd8\xff\xe0" + bytes(64), "damaged|not an image|truncated"),
        (_png(0, 0, 8, 2, b""), "no pixels|not an image|damaged"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
    ],
    ids=["empty", "text", "header only", "0x0", "postscript"],
)
def test_what_is_no_image_is_refused_with_a_reason(data, reason):
    with pytest.raises(UnreadableImage, match=reason) as caught:
        _decode(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("side", [10_000, 60_000])
def test_bombs_are_refused_before_they_are_decoded(side):
    """One size where PIL itself only warns, and one where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UnreadableImage, match="possible bomb"):
            _decode(_png(side, side, 8, 0, b""))


def test_no_random_bytes_get_past_the_reason():
    rng = np.random.default_rng(0)
    for file_format in ("JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP", "PPM"):
        whole = encode(pixels(6), file_format)
        for _ in range(40):
            data = bytearray(whole)
            for place in rng.integers(0, len(data), 8):
                data[place] = rng.integers(256)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PIL's own, on odd metadata
                try:
                    assert _decode(bytes(data)).shape[-1] == 3
                except UnreadableImage as error:
                    assert error.reason  # noqa: PT017


def test_pil_settings_are_left_alone():
    before = (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)
    _decode(encode(pixels(0)))
    with pytest.raises(UnreadableImage):
        _decode(b"nothing")
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UnreadableImage, match=r"gone\.jpg: No such file"):
        read_picture(tmp_path / "gone.jpg")
