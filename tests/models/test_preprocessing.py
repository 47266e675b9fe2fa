"""What a network wants done to its images."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.data.transforms import resize_size
from rdc_jax.models.preprocessing import FIELD, Preprocessing
from rdc_jax.runtime.errors import UserError

CLIP = Preprocessing(
    size=224,
    edge=256,
    keep_aspect=True,
    interpolation="bicubic",
    mean=(0.48, 0.46, 0.41),
    std=(0.27, 0.26, 0.28),
)


def test_the_default_is_the_field_s():
    for size in (16, 32, 84, 224):
        assert FIELD.square_at(size) == (resize_size(size), False, "bilinear")
    assert FIELD.noted == {} and FIELD.colours == []


def test_the_edge_grows_with_the_images():
    assert [CLIP.edge_at(size) for size in (112, 224, 448)] == [128, 256, 512]


def test_it_is_told_for_a_size():
    assert str(CLIP.at(112)).startswith(
        "shorter side to 128 px (bicubic), centre of 112"
    )


def test_colours_are_those_of_the_network():
    pixels = np.random.default_rng(0).random((2, 3, 3, 3))
    images = jnp.asarray((pixels - np.array(FIELD.mean)) / FIELD.std)
    want = (pixels - CLIP.mean) / CLIP.std
    np.testing.assert_allclose(CLIP.renormalised(images), want, rtol=1e-5, atol=1e-6)
    assert FIELD.renormalised(images) is images


def test_it_goes_through_json():
    noted = json.loads(json.dumps(CLIP.noted))
    assert Preprocessing.of_noted(noted) == CLIP
    assert hash(Preprocessing.of_noted(noted)) == hash(CLIP)


def test_it_can_be_overridden():
    fields = {"resize": "squeeze:96", "interpolation": "", "mean": "0.5,0.5,0.5"}
    got = CLIP.replaced(fields, size=84)
    assert got.square_at(84) == (96, False, "bicubic")
    assert got.mean == (0.5, 0.5, 0.5) and got.std == CLIP.std


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("resize", "stretch:256"),
        ("resize", "squeeze"),
        ("resize", "squeeze:64"),
        ("interpolation", "cubic"),
        ("mean", "0.5"),
        ("std", "0,1,1"),
    ],
)
def test_what_is_not_possible_is_refused(name, text):
    with pytest.raises(UserError, match=rf"preprocessing\.{name} is '{text}'"):
        FIELD.replaced({name: text}, size=84)


def test_it_says_what_it_does():
    assert str(CLIP).startswith("shorter side to 256 px (bicubic), centre of 224 px")
    assert "mean 0.48 0.46 0.41" in str(CLIP)
