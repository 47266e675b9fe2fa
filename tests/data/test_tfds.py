"""TFDS: prepared data sets are read from disk, and their absence is explained."""

import ast
import shlex
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds
from data.pictures import encode, pixels
from data.tiny_tfds import prepare, standard_features

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.open import open_source
from rdc_jax.data.tfds import open_tfds
from rdc_jax.runtime.errors import UserError


@pytest.fixture(autouse=True)
def no_default_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "default"))


def _example(label, number, **more):
    image = encode(pixels(number))
    return {"image": image, "label": label, "filename": f"{number:03}.png", **more}


@pytest.fixture(scope="module")
def insects(tmp_path_factory):
    """Classes out of alphabetical order, three splits, five images each."""
    data_dir = tmp_path_factory.mktemp("tfds")
    names = ["wasp", "ant", "moth"]
    splits = {
        split: [_example(names[n % 3], 10 * s + n) for n in range(5)]
        for s, split in enumerate(["train", "validation", "test"])
    }
    prepare(data_dir, "insects", splits, features=standard_features(names))
    return data_dir


def test_records_are_read_without_tensorflow(insects):
    source = open_source("tfds:insects", insects, split="train")
    assert isinstance(source, ImageSet)
    assert "tensorflow" not in sys.modules
    assert source.class_names == ("ant", "moth", "wasp")
    np.testing.assert_array_equal(source.labels, [0, 0, 1, 2, 2])
    for i, seed in enumerate([1, 4, 2, 0, 3]):  # by class name, then by file name
        np.testing.assert_array_equal(source.image(i), pixels(seed))
    assert source.locate(1) == "tfds:insects/1.0.0#004.png"


@pytest.mark.parametrize(
    ("spec", "split", "first"),
    [
        ("tfds:insects", "val", 11),
        ("tfds:insects", "novel", 21),
        ("tfds:insects:train", "test", 1),
        ("tfds:insects:train+test", "test", 1),
        ("tfds:insects:validation[:3]", "test", None),
    ],
)
def test_splits_follow_the_argument_or_the_name(insects, spec, split, first):
    source = open_source(spec, insects, split=split)
    if first is None:
        assert len(source) == 3
    else:
        np.testing.assert_array_equal(source.image(0), pixels(first))


def test_an_unknown_split_lists_the_known_ones(insects):
    with pytest.raises(
        UserError, match="no split 'dev'; it has train, validation, test"
    ):
        open_source("tfds:insects:dev", insects)


def test_fingerprint_follows_content(insects, tmp_path):
    names = ["wasp", "ant", "moth"]
    spec = standard_features(names)
    same = [_example(names[n % 3], n) for n in range(5)]
    prepare(tmp_path / "same", "insects", {"train": same}, features=spec)
    other = [*same[:4], {**same[4], "image": encode(pixels(77))}]
    prepare(tmp_path / "other", "insects", {"train": other}, features=spec)
    original = open_tfds("insects", data_dir=insects, split="train").fingerprint()
    assert open_tfds("insects", data_dir=tmp_path / "same").fingerprint() == original
    assert open_tfds("insects", data_dir=tmp_path / "other").fingerprint() != original


def test_a_broken_record_is_named(tmp_path):
    cut = encode(pixels(0, (64, 64)), "JPEG")[:-400]
    prepare(tmp_path, "bad", {"train": [{**_example("ant", 0), "image": cut}]})
    with pytest.raises(UnreadableImage, match=r"tfds:bad/1\.0\.0#000\.png: truncated"):
        open_tfds("bad", data_dir=tmp_path).image(0)


def test_unlabelled_examples_are_left_out(tmp_path):
    examples = [_example("ant", 0), _example(-1, 1), _example("bee", 2)]
    prepare(tmp_path, "partly", {"train": examples})
    source = open_tfds("partly", data_dir=tmp_path)
    assert len(source) == 2
    assert source.notes[0].text == "1 examples have no label"


def test_inaturalist_is_filtered_by_supercategory(tmp_path):
    """Two class features: the species is the label, the kingdom selects."""
    features = {
        **standard_features(["oak", "fox", "elm"]),
        "supercategory": tfds.features.ClassLabel(names=["Mammalia", "Plantae"]),
    }
    kingdoms = {"oak": "Plantae", "fox": "Mammalia", "elm": "Plantae"}
    examples = [
        _example(name, n, supercategory=kingdoms[name])
        for n, name in enumerate(["oak", "fox", "elm", "fox", "oak"])
    ]
    prepare(tmp_path, "nature", {"train": examples}, features=features)
    source = open_tfds("nature", data_dir=tmp_path, keep=("supercategory", "Plantae"))
    assert source.class_names == ("elm", "oak")
    assert source.ids == ("002.png", "000.png", "004.png")
    with pytest.raises(UserError, match="no feature 'kingdom'"):
        open_tfds("nature", data_dir=tmp_path, keep=("kingdom", "Plantae"))


def test_features_are_found_by_kind(tmp_path):
    features = {
        "picture": tfds.features.Image(),
        "species": tfds.features.ClassLabel(names=["ant", "bee"]),
        "id": tfds.features.Scalar(np.int64),
    }
    example = {"picture": encode(pixels(3)), "species": "bee", "id": 7}
    prepare(tmp_path, "named", {"train": [example]}, features=features)
    source = open_tfds("named", data_dir=tmp_path)
    assert source.class_names == ("bee",)
    assert source.ids == ("7",)
    np.testing.assert_array_equal(source.image(0), pixels(3))


def test_no_image_or_no_label_is_said(tmp_path):
    features = {
        "label": tfds.features.ClassLabel(names=["a"]),
        "text": tfds.features.Text(),
    }
    prepare(tmp_path, "t", {"train": [{"label": "a", "text": "x"}]}, features=features)
    with pytest.raises(
        UserError, match="which feature is an image; it has label, text"
    ):
        open_tfds("t", data_dir=tmp_path)
    two = {
        "image": tfds.features.Image(),
        "left": tfds.features.ClassLabel(names=["a"]),
        "right": tfds.features.ClassLabel(names=["a"]),
    }
    example = {"image": encode(pixels(0)), "left": "a", "right": "a"}
    prepare(tmp_path, "u", {"train": [example]}, features=two)
    with pytest.raises(UserError, match="which feature is a class label"):
        open_tfds("u", data_dir=tmp_path)


def test_configs_and_versions(tmp_path):
    one, two = {"train": [_example("ant", 0)]}, {"train": [_example("bee", 1)]}
    prepare(tmp_path, "many", one, config="rgb", version="1.9.0")
    prepare(tmp_path, "many", two, config="rgb", version="1.10.0")
    assert open_source("tfds:many", tmp_path).class_names == ("bee",)
    prepare(tmp_path, "many", one, config="all")
    assert open_source("tfds:many/all", tmp_path).class_names == ("ant",)
    with pytest.raises(UserError, match="configs all, rgb; choose one"):
        open_source("tfds:many", tmp_path)


def test_the_default_folder_is_looked_at_too(insects, tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(insects))
    assert len(open_source("tfds:insects:train")) == 5
    assert len(open_source("tfds:insects:train", tmp_path)) == 5


def test_missing_data_comes_with_a_command_that_would_prepare_it(tmp_path):
    with pytest.raises(UserError) as caught:
        open_source("tfds:eurosat/rgb", tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    command = message.partition("prepare it: ")[2]
    install, _, python = command.partition(" && ")
    assert install == "pip install 'rdc-jax[prepare]'"
    program, flag, code = shlex.split(python)
    assert (program, flag) == ("python", "-c")
    call = ast.parse(code).body[1].value.func.value  # tfds.builder(...), unprepared
    builder = eval(ast.unparse(call), {"tfds": tfds})
    assert builder.info.full_name == "eurosat/rgb/2.0.0"
    assert str(builder.data_path).startswith(str(tmp_path))


def test_an_unknown_name_gets_close_matches(tmp_path):
    with pytest.raises(UserError, match="did you mean caltech_birds2011"):
        open_source("tfds:caltech_birds2012", tmp_path)


def _lose_shard(folder):
    next(folder.glob("*.array_record-*")).unlink()


def _cut_shard(folder):
    shard = next(folder.glob("*.array_record-*"))
    shard.write_bytes(shard.read_bytes()[:1000])


def _spoil_info(folder):
    (folder / "dataset_info.json").write_text("{")


def _spoil_features(folder):
    (folder / "features.json").write_text("{}")


@pytest.mark.parametrize(
    "damage", [_lose_shard, _cut_shard, _spoil_info, _spoil_features]
)
def test_damaged_files_get_one_line_and_the_command(tmp_path, damage):
    prepare(tmp_path, "hurt", {"train": [_example("ant", 0)]})
    damage(tmp_path / "hurt" / "1.0.0")
    with pytest.raises(UserError, match=r"hurt/1\.0\.0 cannot be read") as caught:
        open_tfds("hurt", data_dir=tmp_path)
    assert "download_and_prepare" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_record_that_goes_bad_later_is_named(tmp_path):
    examples = [_example("ant", n) for n in range(8)]
    prepare(tmp_path, "later", {"train": examples})
    source = open_tfds("later", data_dir=tmp_path)
    shard = next((tmp_path / "later" / "1.0.0").glob("*.array_record-*"))
    data = bytearray(shard.read_bytes())
    data[: len(data) // 2] = bytes(len(data) // 2)
    shard.write_bytes(bytes(data))
    faults = 0
    for i in range(len(source)):
        try:
            source.image(i)
        except UnreadableImage as error:
            faults += error.where == source.locate(i)
    assert faults > 0


def test_a_format_without_random_access_says_how_to_prepare_again(tmp_path):
    prepare(tmp_path, "old", {"train": [_example("ant", 0)]})
    folder = tmp_path / "old" / "1.0.0"
    info = folder / "dataset_info.json"
    info.write_text(info.read_text().replace("array_record", "tfrecord"))
    for shard in folder.glob("*.array_record-*"):
        shard.rename(str(shard).replace("array_record", "tfrecord"))
    with pytest.raises(UserError, match=r"prepare it again: .*array_record"):
        open_tfds("old", data_dir=tmp_path)


def test_a_known_name_is_read_from_tfds_by_the_papers_protocol(tmp_path):
    names = [f"Maker {n:03} Sedan 2012" for n in range(196)]
    examples = [_example(name, n) for n, name in enumerate(reversed(names))]
    splits = {"train": examples, "test": examples[:1]}
    prepare(tmp_path, "cars196", splits, features=standard_features(names[::-1]))
    source = open_source("tfds:cars", tmp_path)
    assert source.name == "cars"
    assert source.class_names == tuple(names[3::4])
    assert len(open_source("tfds:cars", tmp_path, "base")) == 98
    raw = open_source("tfds:cars196", tmp_path, "test")
    assert raw.class_names == (names[-1],)


def test_classes_without_names_come_by_number(tmp_path):
    """As in TFDS's CUB, whose labels are the numbers of the birds, less one."""
    features = {
        "image": tfds.features.Image(),
        "image/filename": tfds.features.Text(),
        "label": tfds.features.ClassLabel(num_classes=200),
        "label_name": tfds.features.Text(),
    }
    examples = [
        {
            "image": encode(pixels(n)),
            "image/filename": f"images/{n + 1:03}.Bird/a.jpg",
            "label": n,
            "label_name": "bird",
        }
        for n in range(200)
    ]
    splits = {"train": examples[::2], "test": examples[1::2]}
    prepare(tmp_path, "caltech_birds2011", splits, features=features)
    source = open_source("tfds:cub", tmp_path)
    assert source.class_names == tuple(str(n) for n in range(3, 200, 4))
    assert source.ids == tuple(f"images/{n:03}.Bird/a.jpg" for n in range(4, 201, 4))
    assert len(open_source("tfds:cub", tmp_path, "base")) == 100


def test_what_tfds_lacks_or_splits_otherwise_is_said(tmp_path):
    with pytest.raises(UserError, match="TFDS has no isic; use its files"):
        open_source("tfds:isic", tmp_path)
    with pytest.raises(UserError, match="use tfds:cars196:test"):
        open_source("tfds:cars:test", tmp_path)
