"""One string opens any source; what cannot be opened is explained in one line."""

import json
import logging
import subprocess
import sys

import pytest
from data.pictures import make_empty_files, make_folder

from rdc_jax.data.names import MissingSplit
from rdc_jax.data.open import find_source, open_source
from rdc_jax.data.synthetic import DOMAINS
from rdc_jax.runtime.errors import UserError


def test_a_folder_by_name_by_path_and_from_here(tmp_path, monkeypatch):
    make_folder(tmp_path / "photos", ["ant", "bee"])
    by_name = open_source("photos", tmp_path)
    by_path = open_source(str(tmp_path / "photos"))
    monkeypatch.chdir(tmp_path)
    here = open_source("photos")
    dotted = open_source("./photos")
    assert by_name.name == by_path.name == here.name == dotted.name == "photos"
    assert len({s.fingerprint() for s in (by_name, by_path, here, dotted)}) == 1


def test_a_home_folder_is_expanded(tmp_path, monkeypatch):
    make_folder(tmp_path / "photos", ["ant", "bee"])
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(open_source("~/photos")) == 4
    assert len(open_source("photos", "~")) == 4


def test_a_folder_without_splits_serves_train_and_test_but_holds_nothing_out(tmp_path):
    make_folder(tmp_path / "photos", ["ant", "bee"])
    for split in ("train", "base", "test", "novel", "all"):
        source = open_source("photos", tmp_path, split)
        assert (len(source), source.split) == (4, "all")
    with pytest.raises(UserError, match="photos has no val split"):
        open_source("photos", tmp_path, "val")


def test_split_folders_are_served_by_split(tmp_path):
    make_folder(tmp_path / "photos" / "train", ["ant", "bee"])
    make_folder(tmp_path / "photos" / "valid", ["cat"])
    assert find_source("photos", tmp_path).parts == ("train", "val")
    assert open_source("photos", tmp_path, "train").class_names == ("ant", "bee")
    val = open_source("photos", tmp_path, "val")
    assert (val.class_names, val.split) == (("cat",), "val")
    with pytest.raises(UserError, match=r"no test split in .*; it has train, val"):
        open_source("photos", tmp_path)


def test_links_may_lead_from_one_split_to_another(tmp_path):
    root = tmp_path / "photos"
    make_folder(root / "train", ["ant"])
    (root / "test").mkdir()
    (root / "test" / "ant").symlink_to(root / "train" / "ant")
    assert len(open_source("photos", tmp_path, "test")) == 2


def test_a_path_is_taken_as_it_is_even_when_its_name_is_known(tmp_path):
    make_empty_files(tmp_path / "cub", [f"c{n:03}" for n in range(200)])
    assert len(open_source("cub", tmp_path).class_names) == 50
    assert len(open_source(str(tmp_path / "cub")).class_names) == 200


def test_file_lists_alone_or_as_a_folder(tmp_path):
    make_folder(tmp_path / "images", ["ant", "bee"])
    content = {
        "label_names": ["ant", "bee"],
        "image_names": ["images/ant/000.png", "images/bee/000.png"],
        "image_labels": [0, 1],
    }
    lists = tmp_path / "lists"
    lists.mkdir()
    relative = {
        **content,
        "image_names": [f"{tmp_path}/{n}" for n in content["image_names"]],
    }
    (lists / "base.json").write_text(json.dumps(relative))
    (lists / "novel.json").write_text(json.dumps(relative))
    (tmp_path / "one.json").write_text(json.dumps(content))
    assert len(open_source(str(tmp_path / "one.json"))) == 2
    assert len(open_source("one.json", tmp_path)) == 2
    assert find_source("lists", tmp_path).parts == ("train", "test")
    assert open_source("lists", tmp_path, "novel").split == "test"


def test_synthetic_sources_are_delegated():
    for name in DOMAINS:
        source = open_source(f"synthetic:{name}", split="novel")
        assert (source.name, source.split) == (name, "test")
        assert len(source.labels) == len(source) > 0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("photo", "unknown data set 'photo': did you mean photos?"),
        ("eurosta", "did you mean eurosat?"),
        ("glyphs", "did you mean synthetic:glyphs?"),
        ("synthetic:nothing", "unknown synthetic domain 'nothing'"),
        ("xyzzy", "holds photos; give a known name"),
        ("cub", "cub is not in .*; get it from https://.*or use tfds:cub"),
        ("isic", "isic is not in .*GroundTruth.csv"),
        ("/no/such/folder", "there is no folder /no/such/folder"),
        ("", "has no name"),
        ("tfds:", "has no name"),
        ("synthetic:", "has no name"),
        ("gone.json", "cannot read .*gone.json"),
    ],
)
def test_what_does_not_exist_is_explained_in_one_line(tmp_path, spec, message):
    make_folder(tmp_path / "photos", ["ant", "bee"])
    with pytest.raises(UserError, match=message) as caught:
        open_source(spec, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_name_that_is_known_and_here_is_meant_once(tmp_path):
    make_folder(tmp_path / "EuroSAT", ["Forest"])
    make_folder(tmp_path / "isic", ["mel"])
    for spec, meant in {"eurosta": "eurosat", "isci": "isic"}.items():
        with pytest.raises(UserError, match=rf"did you mean {meant}\?"):
            open_source(spec, tmp_path)


def test_a_missing_split_can_be_told_from_a_missing_data_set(tmp_path):
    make_folder(tmp_path / "photos", ["ant"])
    make_folder(tmp_path / "split" / "train", ["ant"])
    make_folder(tmp_path / "eurosat", [f"class {n}" for n in range(10)])
    for spec in ("photos", "split", "eurosat", "synthetic:glyphs"):
        with pytest.raises(MissingSplit, match="val"):
            open_source(spec, tmp_path, "val")
    with pytest.raises(UserError) as caught:
        open_source("gone", tmp_path, "val")
    assert not isinstance(caught.value, MissingSplit)


def test_a_wrong_data_dir_or_split_is_named(tmp_path):
    with pytest.raises(UserError, match="data_dir /no/where is not a folder"):
        open_source("cub", "/no/where")
    make_folder(tmp_path / "photos", ["ant", "bee"])
    with pytest.raises(UserError, match="unknown split 'tset'"):
        open_source("photos", tmp_path, "tset")


def test_problems_are_logged_a_few_of_each_kind(tmp_path, caplog):
    make_folder(tmp_path / "photos", ["ant"])
    for number in range(9):
        (tmp_path / "photos" / f"empty {number}").mkdir()
    with caplog.at_level(logging.INFO):
        open_source("photos", tmp_path)
    assert len(caplog.records) == 6
    assert caplog.messages[0] == "photos: empty class: class 'empty 0' has no images"
    assert caplog.messages[-1] == "photos: empty class: 4 more"


def test_the_package_imports_lightly():
    code = (
        "import sys, rdc_jax.data; rdc_jax.data.open_source; rdc_jax.data.DATASETS; "
        "heavy = {'flax', 'orbax', 'grain', 'tensorflow_datasets', 'torch'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
