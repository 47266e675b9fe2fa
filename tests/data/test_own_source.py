"""A data source from outside the package is opened, listed and checked by its name."""

import pathlib

import numpy as np
import pytest

from rdc_jax.data import __main__ as program
from rdc_jax.data.catalogue import catalogue
from rdc_jax.data.names import MissingSplit
from rdc_jax.data.open import find_source, open_source, register_source
from rdc_jax.data.pixels import pixel_cache
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.plugins import load_plugin

SOURCE = pathlib.Path(__file__).parents[2] / "docs" / "extending" / "source.py"


@pytest.fixture(autouse=True)
def stripes():
    load_plugin(SOURCE)


def test_it_is_opened_by_name_with_or_without_an_argument():
    source = open_source("stripes")
    assert (source.name, len(source), len(source.class_names)) == ("stripes", 160, 8)
    assert len(open_source("stripes:3")) == 24
    assert source.image(159).shape == (32, 32, 3)
    assert source.labels.dtype == np.int32 and not source.labels.flags.writeable
    assert find_source("stripes").parts == ("all",)


def test_a_split_that_it_lacks_can_be_told_from_a_missing_source():
    with pytest.raises(MissingSplit, match="stripes has no val split"):
        open_source("stripes", split="val")


def test_its_identity_decides_whether_a_cache_is_used(tmp_path):
    few, many = open_source("stripes:2"), open_source("stripes:3")
    assert few.fingerprint() == open_source("stripes:2").fingerprint()
    assert few.fingerprint() != many.fingerprint()
    pixels = pixel_cache(few, 32, tmp_path)
    np.testing.assert_array_equal(pixels.images[5], few.image(5))


def test_it_is_listed_suggested_and_checked(capsys, tmp_path):
    assert "stripes  Stripes of eight widths" in catalogue(tmp_path)
    with pytest.raises(UserError, match="did you mean stripes"):
        open_source("stipes", tmp_path)
    with pytest.raises(SystemExit) as caught:
        program.main(["verify", "stripes", "--plugins", str(SOURCE)])
    assert caught.value.code == 0
    assert "stripes, test: 8 classes, 160 images" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["stripes", "cub", "tfds", "synthetic"])
def test_a_name_has_one_source(name):
    with pytest.raises(ValueError, match=f"a data source {name!r} already"):
        register_source(name)


def test_a_plugin_that_is_not_there_is_told_before_anything_is_read(tmp_path):
    with pytest.raises(UserError, match=r"plugin .*gone\.py is not there"):
        program.main(["verify", "stripes", "--plugins", str(tmp_path / "gone.py")])
