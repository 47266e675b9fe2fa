"""The paper's data sets: the table itself, and the rule that selects classes."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
from data.pictures import make_empty_files

from rdc_jax.data.datasets import DATASETS
from rdc_jax.data.folder import open_folder
from rdc_jax.data.open import open_source
from rdc_jax.data.paper_splits import take_split
from rdc_jax.runtime.errors import UserError

_SIZES = {  # classes in train, val and test; no train means a target domain
    "miniimagenet": (64, 16, 20),
    "cub": (100, 50, 50),
    "cars": (98, 49, 49),
    "places": (183, 91, 91),
    "plantae": (100, 50, 50),
    "cropdisease": (None, None, 38),
    "eurosat": (None, None, 10),
    "isic": (None, None, 7),
    "chestx": (None, None, 7),
}


def _names(count):
    return [f"c{n:03}" for n in range(count)]


def test_the_nine_are_there():
    assert list(DATASETS) == list(_SIZES)


@pytest.mark.parametrize("name", _SIZES)
def test_split_sizes(name):
    dataset = DATASETS[name]
    for split, size in zip(("train", "val", "test"), _SIZES[name], strict=True):
        if size:
            assert dataset.size(split) == size


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=list(DATASETS))
def test_what_is_known_is_consistent(dataset):
    assert dataset.origin.startswith("http")
    assert dataset.layout
    assert dataset.size("train") + dataset.size("val") + dataset.size("test") == (
        3 * dataset.classes if dataset.partition == "whole" else dataset.classes
    )


@pytest.mark.parametrize("count", [196, 200, 365])
def test_splits_by_index_are_disjoint_and_complete(count):
    dataset = next(d for d in DATASETS.values() if d.classes == count)
    splits = [dataset.members(split) for split in ("train", "val", "test")]
    assert sorted(i for split in splits for i in split) == list(range(count))
    assert all(i % 4 == 3 for i in dataset.members("test"))
    assert all(i % 4 == 1 for i in dataset.members("val"))
    assert all(i % 2 == 0 for i in dataset.members("train"))


def test_a_complete_folder_is_split_by_sorted_position(tmp_path):
    make_empty_files(tmp_path / "cub", _names(200), images=2)
    for split, start, step in (("base", 0, 2), ("val", 1, 4), ("novel", 3, 4)):
        source = open_source("cub", tmp_path, split)
        assert source.class_names == tuple(_names(200)[start::step])
        np.testing.assert_array_equal(
            source.labels, np.repeat(np.arange(len(source.class_names)), 2)
        )
        classes = [path.split("/")[0] for path in source.ids]
        assert classes == [source.class_names[label] for label in source.labels]


def test_a_folder_of_test_classes_alone_is_taken_whole_and_says_so(tmp_path):
    make_empty_files(tmp_path / "cars", _names(49))
    source = open_source("cars", tmp_path)
    assert source.class_names == tuple(_names(49))
    assert source.split == "test"
    (note,) = source.notes
    assert "49 classes, as many as the test split has" in note.text
    assert not note.problem
    with pytest.raises(UserError, match="its train classes cannot be told apart"):
        open_source("cars", tmp_path, "train")


@pytest.mark.parametrize("count", [1, 48, 50, 98, 195, 197])
def test_any_other_number_of_classes_is_an_error(tmp_path, count):
    make_empty_files(tmp_path / "cars", _names(count))
    with pytest.raises(UserError, match=f"has {count} classes here.*expected 196"):
        open_source("cars", tmp_path)


def test_folders_that_are_split_already_are_used_so(tmp_path):
    names = _names(200)
    for folder, part in (("base", names[::2]), ("novel", names[3::4])):
        make_empty_files(tmp_path / "cub" / folder, part)
    assert open_source("cub", tmp_path, "test").class_names == tuple(names[3::4])
    assert open_source("cub", tmp_path, "train").class_names == tuple(names[::2])
    with pytest.raises(UserError, match=r"no val split.*it has train, test"):
        open_source("cub", tmp_path, "val")


@pytest.mark.parametrize(
    ("name", "inside", "count"),
    [
        ("cub", "CUB_200_2011/images", 200),
        ("cars", "car_data/car_data/train", 196),
        ("places", "places365_standard/train", 365),
        ("plantae", "Plantae", 200),
        ("plantae", "train_val2018/Plantae", 200),
        ("cropdisease", "train", 38),
        ("eurosat", "2750", 10),
    ],
)
def test_archives_are_used_as_they_unpack(tmp_path, name, inside, count):
    root = tmp_path / name
    make_empty_files(root / inside, _names(count))
    make_empty_files((root / inside).parent / "attributes", ["a", "b"])
    (root / "README.txt").touch()
    source = open_source(name, tmp_path)
    assert len(source.class_names) == DATASETS[name].size("test")


def test_cars_test_images_are_never_used(tmp_path):
    make_empty_files(tmp_path / "cars" / "train", _names(196), images=2)
    make_empty_files(tmp_path / "cars" / "test", _names(196), images=3)
    assert len(open_source("cars", tmp_path)) == 49 * 2


def test_places_keeps_the_first_files_of_a_class(tmp_path):
    assert DATASETS["places"].first == 200
    places = dataclasses.replace(DATASETS["places"], first=3, per_class=3)
    make_empty_files(tmp_path, _names(91), images=5)
    source = take_split(places, open_folder(tmp_path, name="places"), "test")
    assert len(source) == 91 * 3
    assert {path[-9:] for path in source.ids} == {f"{n:05}.jpg" for n in range(3)}
    assert not [note for note in source.notes if note.problem]


def test_plantae_keeps_the_largest_classes_and_caps_them(tmp_path):
    sizes = {name: 2 for name in _names(200)}
    sizes |= {"a small": 1, "z small": 1, "b large": 603}
    for name, size in sizes.items():
        make_empty_files(tmp_path / "plantae", [name], images=size)
    source = open_source("plantae", tmp_path, "all")
    assert len(source.class_names) == 200
    assert {"a small", "z small"}.isdisjoint(source.class_names)
    assert "c199" not in source.class_names  # the last of many that tie
    counts = np.bincount(source.labels)
    assert counts[source.class_names.index("b large")] == 600


def test_target_domains_have_a_test_split_only(tmp_path):
    make_empty_files(tmp_path / "eurosat", _names(10))
    assert open_source("eurosat", tmp_path).split == "test"
    for split in ("train", "val"):
        with pytest.raises(UserError, match="test split only"):
            open_source("eurosat", tmp_path, split)


def test_a_partial_download_is_noted(tmp_path):
    names = _names(10)
    make_empty_files(tmp_path / "1" / "eurosat", names[:9])
    make_empty_files(tmp_path / "2" / "eurosat", names, images=3)
    (note,) = open_source("eurosat", tmp_path / "1").notes
    assert note.text == "9 classes, expected 10: partial download or other data?"
    (note,) = open_source("eurosat", tmp_path / "2").notes
    assert note.text.startswith("30 images, the complete data set has 27,000; fine")
    assert note.problem


def test_unsplit_miniimagenet_is_refused(tmp_path):
    make_empty_files(tmp_path / "miniimagenet", _names(100))
    with pytest.raises(UserError, match="is not split; expected"):
        open_source("miniimagenet", tmp_path, "train")


def test_every_data_set_is_documented():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "datasets.md").read_text()
    assert "verify cub --data_dir" in text
    for name, dataset in DATASETS.items():
        assert f"| `{name}` | {dataset.classes} | {dataset.size('test')}" in text
        assert re.search(r"https?://[^\s,]+", dataset.origin)[0] in text
        if dataset.tfds:
            assert f"`tfds:{name}`, from `{dataset.tfds}`" in text
        if dataset.images:
            assert f"{dataset.images:,}" in text
