"""File sources: the protocol, and fingerprints that identify content."""

import os
import shutil
import unicodedata

import numpy as np
import pytest
from data.pictures import make_folder, pixels, write
from PIL import Image

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.folder import open_folder
from rdc_jax.data.image_set import ImageSet, from_classes
from rdc_jax.runtime.errors import UserError


@pytest.fixture
def root(tmp_path):
    return make_folder(tmp_path / "set", ["ant", "bee", "cat"], images=3)


def _fingerprint(root):
    return open_folder(root, name="set").fingerprint()


def test_a_file_source_is_a_source(root):
    source = open_folder(root, name="set")
    assert isinstance(source, ImageSet)
    assert len(source) == 9
    assert source.class_names == ("ant", "bee", "cat")
    np.testing.assert_array_equal(source.labels, np.repeat([0, 1, 2], 3))
    assert source.labels.dtype == np.int32
    np.testing.assert_array_equal(source.image(4), pixels(1001))
    assert source.locate(4) == str(root / "bee" / "001.png")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 1])}, "3 ids and 2 labels"),
        ({"labels": np.array([0, 2, 1])}, r"a label is outside 0 \.\.\. 1"),
        ({"labels": np.array([0, -1, 1])}, "a label is outside"),
        ({"identity": ""}, "give a digest or an identity"),
    ],
)
def test_a_set_that_cannot_be_right_is_refused(change, message):
    fields = {
        "name": "own",
        "split": "test",
        "ids": ["a", "b", "c"],
        "labels": np.array([0, 1, 1]),
        "class_names": ("ant", "bee"),
        "read": lambda i: Image.new("RGB", (8, 8)),
        "identity": "own, version 1",
    }
    assert len(ImageSet(**fields)) == 3
    with pytest.raises(ValueError, match=message):
        ImageSet(**{**fields, **change})


def test_labels_cannot_be_changed_by_accident(root):
    with pytest.raises(ValueError, match="read-only"):
        open_folder(root, name="set").labels[0] = 1


def test_a_copy_elsewhere_has_the_same_fingerprint(root, tmp_path):
    shutil.copytree(root, tmp_path / "copy", copy_function=shutil.copyfile)
    assert _fingerprint(root) == _fingerprint(tmp_path / "copy")


def test_name_and_times_do_not_count(root):
    before = _fingerprint(root)
    os.utime(root / "ant" / "000.png", (1, 1))
    assert open_folder(root, name="another").fingerprint() == before


def _edit(root):
    write(root / "ant" / "000.png", seed=99)


def _rename(root):
    (root / "ant" / "000.png").rename(root / "ant" / "009.png")


def _move(root):
    (root / "ant" / "000.png").rename(root / "bee" / "900.png")


def _remove(root):
    (root / "ant" / "000.png").unlink()


def _swap(root):
    one, two = root / "ant" / "000.png", root / "bee" / "000.png"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def _rename_class(root):
    (root / "cat").rename(root / "dog")


@pytest.mark.parametrize(
    "change", [_edit, _rename, _move, _remove, _swap, _rename_class]
)
def test_any_change_of_content_changes_the_fingerprint(root, change):
    before = _fingerprint(root)
    change(root)
    assert _fingerprint(root) != before


def test_an_edit_that_keeps_size_and_time_is_seen_by_another_process(root):
    """Within a process a file is hashed once; the memo must not outlive the path."""
    path = root / "ant" / "000.png"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    shutil.copytree(root, root.parent / "edited")
    (root.parent / "edited" / "ant" / "000.png").write_bytes(bytes(data))
    os.utime(
        root.parent / "edited" / "ant" / "000.png", ns=(0, path.stat().st_mtime_ns)
    )
    assert _fingerprint(root) != _fingerprint(root.parent / "edited")


def test_a_file_that_vanishes_is_named(root):
    source = open_folder(root, name="set")
    (root / "bee" / "001.png").unlink()
    with pytest.raises(UserError, match=r"bee/001\.png"):
        source.fingerprint()
    with pytest.raises(UnreadableImage, match=r"bee/001\.png"):
        source.image(4)


def test_order_does_not_depend_on_the_input_order(tmp_path):
    rows = [(f"{c}/{i}.jpg", c) for c in "bca" for i in (10, 9, 1)]
    forward = from_classes("x", "all", tmp_path, rows)
    backward = from_classes("x", "all", tmp_path, rows[::-1])
    assert forward.ids == backward.ids
    assert forward.class_names == ("a", "b", "c")


def test_accents_sort_the_same_however_they_are_composed(tmp_path):
    names = ["école", "eau", "zoo", "étang"]
    orders = []
    for form in ("NFC", "NFD"):
        rows = [("x.jpg", unicodedata.normalize(form, name)) for name in names]
        found = from_classes("x", "all", tmp_path, rows).class_names
        orders.append([unicodedata.normalize("NFC", name) for name in found])
    assert orders[0] == orders[1]
