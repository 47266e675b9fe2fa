"""The user's folders."""

import io

import numpy as np
import pytest
from data import pictures as drawn
from PIL import Image

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.predict.pictures import (
    find_queries,
    open_support,
    read_pictures,
)
from rdc_jax.runtime.errors import UserError


def test_queries_are_found_in_all_folders_below_in_sorted_order(tmp_path):
    for name in ("b.png", "a.JPG", "trip/day 2/c.png", ".hidden.png", ".git/d.png"):
        drawn.write(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    assert list(find_queries(tmp_path)) == ["a.JPG", "b.png", "trip/day 2/c.png"]


def test_a_loop_of_links_ends(tmp_path):
    drawn.write(tmp_path / "a.png")
    (tmp_path / "again").symlink_to(tmp_path)
    assert len(find_queries(tmp_path)) == 1


def test_one_picture_is_a_query_too(tmp_path):
    path = drawn.write(tmp_path / "a.png")
    assert find_queries(path) == {"a.png": path}


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
    assert isinstance(found[1], UnreadableImage)
    for square, thumbnail in (found[0], found[2]):
        assert square.shape == (8, 8, 3) and thumbnail == b""


def test_thumbnails_keep_the_shape_of_the_picture(tmp_path):
    path = tmp_path / "wide.png"
    Image.new("RGB", (640, 320), "red").save(path)
    ((_, jpeg),) = read_pictures((path,), 8, thumbnails=True)
    with Image.open(io.BytesIO(jpeg)) as thumbnail:
        assert thumbnail.size == (160, 80)


def test_files_images_and_arrays_are_squeezed_alike(tmp_path):
    path = drawn.write(tmp_path / "a.png", seed=3)
    with Image.open(path) as image:
        forms = [path, image, drawn.pixels(3)]
        squares = [square for square, _ in read_pictures(forms, 8)]
    assert squares[0].dtype == np.uint8
    for square in squares[1:]:
        assert (square == squares[0]).all()


@pytest.mark.parametrize("mode", ["RGBA", "L", "P", "CMYK", "I;16"])
def test_images_of_any_mode_are_read_as_their_files(mode, tmp_path):
    image = Image.fromarray(drawn.pixels(3))
    if mode == "I;16":
        image = Image.fromarray(np.arange(0, 64000, 1000, np.uint16).reshape(8, 8))
    elif mode == "RGBA":
        image.putalpha(77)
    else:
        image = image.convert(mode)
    path = tmp_path / "a.tif"
    image.save(path)
    from_file, from_image = (one[0] for one in read_pictures([path, image], 8))
    assert (from_file == from_image).all()
