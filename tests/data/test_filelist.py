"""File lists of the lineage: what is accepted, and one clear line otherwise."""

import json
import os

import numpy as np
import pytest
from data.pictures import make_folder, pixels

from rdc_jax.data.filelist import open_filelist
from rdc_jax.runtime.errors import UserError


@pytest.fixture
def root(tmp_path):
    return make_folder(tmp_path / "set", ["ant", "bee"])


def _list(**changes):
    content = {
        "label_names": ["ant", "bee"],
        "image_names": ["bee/000.png", "ant/001.png", "ant/000.png"],
        "image_labels": [1, 0, 0],
    }
    return {k: v for k, v in {**content, **changes}.items() if v is not None}


def _write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_paths_count_from_the_json(root):
    source = open_filelist(_write(root / "novel.json", _list()))
    np.testing.assert_array_equal(source.labels, [1, 0, 0])
    np.testing.assert_array_equal(source.image(0), pixels(1000))
    assert source.class_names == ("ant", "bee")
    assert source.name == "set-novel"
    assert source.locate(1) == str(root / "ant" / "001.png")


def test_paths_count_from_data_dir_where_the_json_is_elsewhere(root, tmp_path):
    (tmp_path / "lists").mkdir()
    path = _write(tmp_path / "lists" / "base.json", _list())
    assert len(open_filelist(path, data_dir=root)) == 3
    with pytest.raises(UserError, match="3 of 3 images are missing"):
        open_filelist(path)


def test_absolute_paths_may_be_anywhere(root, tmp_path):
    (tmp_path / "lists").mkdir()
    names = [str(root / name) for name in _list()["image_names"]]
    path = _write(tmp_path / "lists" / "x.json", _list(image_names=names))
    assert len(open_filelist(path)) == 3


def test_absolute_and_relative_lists_have_one_fingerprint(root):
    names = [str(root / name) for name in _list()["image_names"]]
    relative = open_filelist(_write(root / "a.json", _list()))
    absolute = open_filelist(_write(root / "b.json", _list(image_names=names)))
    assert relative.fingerprint() == absolute.fingerprint()


def test_names_without_images_are_left_out(root):
    content = _list(label_names=["aye", "ant", "bat", "bee"], image_labels=[3, 1, 1])
    source = open_filelist(_write(root / "novel.json", content))
    assert source.class_names == ("ant", "bee")
    np.testing.assert_array_equal(source.labels, [1, 0, 0])
    assert "2 of 4 label names have no image" in source.notes[0].text
    assert not source.notes[0].problem


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid json"),
        ("[" * 100_000, "is not valid json"),
        ("[1]", "holds a list, not a json object"),
        (_list(image_names=None), "lacks 'image_names'"),
        (_list(label_names="ant"), "label_names is a str, not a list"),
        (_list(label_names=["ant", 3]), r"label_names\[1\] is 3, not of type str"),
        (
            _list(image_labels=[0, True, 1]),
            r"image_labels\[1\] is True, not of type int",
        ),
        (_list(image_labels=[0, 1.0, 1]), r"image_labels\[1\] is 1.0"),
        (_list(image_labels=[0, 1]), "3 image_names but 2 image_labels"),
        (_list(image_labels=[0, 2, 1]), r"image_labels\[1\] is 2, outside 0..1"),
        (_list(image_labels=[0, -1, 1]), r"image_labels\[1\] is -1"),
        (_list(image_names=[], image_labels=[]), "lists no images"),
        (_list(label_names=["ant", "ant"]), "label_names has 'ant' 2 times"),
        (_list(image_names=["ant/000.png"] * 3), "image_names has .* 3 times"),
        (
            _list(image_names=["ant/000.png", "ant/../ant/000.png", "bee/000.png"]),
            "image_names has .* 2 times",
        ),
        (
            _list(image_names=["ant/000.png", "../../etc/passwd", "bee/000.png"]),
            "leads outside",
        ),
        (
            _list(image_names=["ant/000.png", "ant/7.png", "bee/8.png"]),
            "2 of 3 images are missing, first 'ant/7.png'",
        ),
        (_list(image_names=["ant/000.png", "ant", "bee/000.png"]), "1 of 3 images"),
        (_list(image_names=["ant/000.png", "a\0b", "bee/000.png"]), "1 of 3 images"),
        (_list(image_names=["ant/000.png", "\ud800", "bee/000.png"]), "1 of 3 images"),
    ],
)
def test_a_malformed_list_gets_one_clear_line(root, content, message):
    path = _write(root / "bad list.json", content)
    with pytest.raises(UserError, match=message) as caught:
        open_filelist(path)
    assert "\n" not in str(caught.value)
    str(caught.value).encode("utf-8")


def test_a_missing_or_binary_list_is_named(root):
    with pytest.raises(UserError, match=r"cannot read .*gone\.json: No such file"):
        open_filelist(root / "gone.json")
    (root / "b.json").write_bytes(os.urandom(64) + b"\xff\xfe\xfd")
    with pytest.raises(UserError, match=r"b\.json is not valid json"):
        open_filelist(root / "b.json")
