"""The user's folders."""

import io

import numpy as np
import pytest
from data import pictures as drawn
from PIL import Image

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.predict.pictures import (
    Picture,
    find_queries,
    open_support,
    read_pictures,
    squeeze,
)
from rdc_jax.runtime.errors import UserError


def test_queries_are_found_in_all_folders_below_in_sorted_order(tmp_path):
    for name in ("b.png", "a.JPG", "trip/day 2/c.png", ".hidden.png", ".git/d.png"):
        drawn.write(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    found = [str(path.relative_to(tmp_path)) for path in find_queries(tmp_path)]
    assert found == ["a.JPG", "b.png", "trip/day 2/c.png"]


def test_a_loop_of_links_ends(tmp_path):
    drawn.write(tmp_path / "a.png")
    (tmp_path / "again").symlink_to(tmp_path)
    assert len(find_queries(tmp_path)) == 1


def test_one_picture_is_a_query_too(tmp_path):
    path = drawn.write(tmp_path / "a.png")
    assert find_queries(path) == (path,)


def test_nothing_to_classify_is_told(tmp_path):
    with pytest.raises(UserError, match="is not there"):
        find_queries(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no pictures under"):
        find_queries(tmp_path)


def test_one_class_is_not_enough(tmp_path):
    drawn.make_folder(tmp_path, ["lonely"])
    with pytest.raises(UserError, match="has one class with pictures, 'lonely'"):
        open_support(tmp_path)


def test_unreadable_pictures_do_not_stop_the_others(tmp_path):
    good = drawn.write(tmp_path / "good.png")
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    found = list(read_pictures((good, bad, good), 8))
    assert [type(one) for one in found] == [Picture, UnreadableImage, Picture]
    assert found[0].square.shape == (8, 8, 3) and found[0].thumbnail == b""


def test_thumbnails_keep_the_shape_of_the_picture(tmp_path):
    path = tmp_path / "wide.png"
    Image.new("RGB", (640, 320), "red").save(path)
    (found,) = read_pictures((path,), 8, thumbnails=True)
    with Image.open(io.BytesIO(found.thumbnail)) as thumbnail:
        assert thumbnail.size == (160, 80)


def test_arrays_and_files_are_squeezed_alike(tmp_path):
    path = drawn.write(tmp_path / "a.png", seed=3)
    (found,) = read_pictures((path,), 8)
    assert (squeeze(drawn.pixels(3)[None], 8)[0] == found.square).all()
    assert found.square.dtype == np.uint8
