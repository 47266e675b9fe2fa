"""Pictures become squares as Pillow and torchvision's sizes say."""

import numpy as np
import pytest
from PIL import Image

from rdc_jax.data.pixels import cache_name
from rdc_jax.data.squares import Square


def picture(width, height):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3))
    return Image.fromarray(pixels.astype(np.uint8))


def test_a_number_is_the_fields_square():
    one = picture(40, 30)
    want = np.asarray(one.resize((16, 16), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(Square.given(16).of(one), want)
    assert Square.given(16).fields == {"size": 16, "resize": "bilinear"}


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (31, 31), (200, 17)])
def test_the_aspect_is_kept_and_the_centre_taken(size):
    width, height = size
    one, short = picture(*size), min(size)
    resized = one.resize(
        (int(24 * width / short), int(24 * height / short)), Image.Resampling.BICUBIC
    )
    left = round((resized.width - 24) / 2)
    top = round((resized.height - 24) / 2)
    want = np.asarray(resized)[top : top + 24, left : left + 24]
    got = Square(24, keep_aspect=True, interpolation="bicubic").of(one)
    np.testing.assert_array_equal(got, want)


def test_caches_of_other_squares_have_other_names_and_fields():
    squares = [Square(24), Square(25), Square(24, True), Square(24, False, "bicubic")]
    assert len({cache_name(square.name) for square in squares}) == 4
    assert len({str(square.fields) for square in squares}) == 4
