"""Tables: ChestX, ISIC and miniImageNet are read where they were unpacked."""

import csv

import numpy as np
import pytest
from data.pictures import pixels, write

from rdc_jax.data.open import find_source, open_source
from rdc_jax.data.tables import LESIONS
from rdc_jax.runtime.errors import UserError


def _csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def chestx(tmp_path):
    """Twelve archives in the original; here two, each with its own folder."""
    root = tmp_path / "chestx"
    findings = {
        "00000001_000.png": "Cardiomegaly",
        "00000001_001.png": "Cardiomegaly|Emphysema",
        "00000002_000.png": "No Finding",
        "00000003_000.png": "Hernia",
        "00000004_000.png": "Mass",
        "00000005_000.png": "Mass|Nodule",
        "00000006_000.png": "Atelectasis",
        "00000007_000.png": "Pneumonia",
    }
    rows = [["Image Index", "Finding Labels", "Follow-up #"]]
    for number, (name, finding) in enumerate(findings.items()):
        rows.append([name, finding, number])
        write(root / f"images_00{1 + number % 2}" / "images" / name, seed=number)
    _csv(root / "Data_Entry_2017.csv", rows)
    return root


def test_chestx_takes_images_with_exactly_one_of_the_findings(chestx):
    source = open_source("chestx", chestx.parent)
    assert source.class_names == ("Atelectasis", "Cardiomegaly", "Mass")
    assert source.split == "test"
    for i, seed in enumerate([6, 0, 4]):
        np.testing.assert_array_equal(source.image(i), pixels(seed))


def test_chestx_from_one_flat_folder_is_the_same(chestx):
    apart = open_source("chestx", chestx.parent)
    images = [apart.image(i) for i in range(3)]
    (chestx / "images").mkdir()
    for path in list(chestx.glob("images_*/images/*.png")):
        path.rename(chestx / "images" / path.name)
    together = open_source("chestx", chestx.parent)
    assert together.class_names == apart.class_names
    for i, image in enumerate(images):
        np.testing.assert_array_equal(together.image(i), image)


def test_a_table_is_recognised_in_any_folder(chestx):
    by_path = open_source(str(chestx))
    assert len(by_path) == 3
    assert by_path.name == "chestx"


def _lesions(root):
    names = {f"ISIC_002430{n}": lesion for n, lesion in enumerate(LESIONS)}
    for number, name in enumerate(names):
        folder = f"HAM10000_images_part_{1 + number % 2}"
        write(root / folder / f"{name}.jpg", seed=number)
    return names


def test_isic_one_hot_and_metadata_agree(tmp_path):
    one_hot, metadata = tmp_path / "1" / "isic", tmp_path / "2" / "isic"
    order = ["MEL", "NV", "BCC", "AKIEC", "BKL", "DF", "VASC"]  # the challenge's
    rows = [["image", *order]]
    for name, lesion in _lesions(one_hot).items():
        rows.append([name, *(float(column.lower() == lesion) for column in order)])
    folder = one_hot / "ISIC2018_Task3_Training_GroundTruth"
    _csv(folder / "ISIC2018_Task3_Training_GroundTruth.csv", rows)
    rows = [["lesion_id", "image_id", "dx", "age"]]
    for name, lesion in _lesions(metadata).items():
        rows.append(["HAM_1", name, lesion, 50])
    _csv(metadata / "HAM10000_metadata.csv", rows)
    first = open_source("isic", one_hot.parent)
    second = open_source("isic", metadata.parent)
    assert first.class_names == second.class_names == LESIONS
    np.testing.assert_array_equal(first.labels, np.arange(7))
    assert first.fingerprint() == second.fingerprint()


@pytest.fixture
def mini(tmp_path):
    root = tmp_path / "miniImageNet"  # the name is matched in any case
    for split, wnids in {"train": "12", "val": "3", "test": "45"}.items():
        rows = [["filename", "label"]]
        for wnid in wnids:
            for number in range(2):
                name = f"n0000000{wnid}0000000{number}.jpg"
                rows.append([name, f"n0000000{wnid}"])
                write(root / "images" / name, seed=int(wnid) * 10 + number)
        _csv(root / f"{split}.csv", rows)
    return root


def test_miniimagenet_is_split_by_its_csv_files(mini):
    assert find_source("miniimagenet", mini.parent).parts == ("train", "val", "test")
    train = open_source("miniimagenet", mini.parent, "base")
    assert train.class_names == ("n00000001", "n00000002")
    novel = open_source("miniimagenet", mini.parent, "novel")
    assert novel.class_names == ("n00000004", "n00000005")
    np.testing.assert_array_equal(novel.labels, [0, 0, 1, 1])


def test_missing_images_are_counted_and_the_first_is_named(mini):
    (mini / "images" / "n000000010000001.jpg").unlink(missing_ok=True)
    (mini / "images" / "n0000000100000001.jpg").unlink()
    source = open_source("miniimagenet", mini.parent, "train")
    note = next(note for note in source.notes if note.kind == "missing")
    assert note.text.startswith("1 of 4 images of ")
    assert note.text.endswith("first n0000000100000001.jpg")
    for path in (mini / "images").iterdir():
        path.unlink()
    with pytest.raises(UserError, match="none of the 4 images"):
        open_source("miniimagenet", mini.parent, "train")


def test_links_that_leave_the_folder_are_not_followed(mini, tmp_path):
    (mini / "images").rename(tmp_path / "elsewhere")
    (mini / "images").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="images: link leads outside"):
        open_source("miniimagenet", mini.parent, "train")


def test_one_name_in_two_folders_is_reported(mini):
    write(mini / "more" / "n0000000100000000.jpg", seed=999)
    source = open_source("miniimagenet", mini.parent, "train")
    assert any("the same name as images/" in note.text for note in source.notes)
    assert len(source) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,label\na.jpg,x\n", "lacks the columns filename; it has file, label"),
        ("", "lacks the columns filename, label; it has nothing"),
        ("filename,label\na.jpg\n", "line 2: too few columns"),
        ("filename,label\na.jpg,x\na.jpg,y\n", "line 3: 'a.jpg' is listed twice"),
        (b"filename,label\n\xff\xfe,x\n", "is not a csv file"),
        ("filename,label\n", "none of the 0 images"),
    ],
)
def test_a_malformed_table_gets_one_clear_line(mini, text, message):
    data = text if isinstance(text, bytes) else text.encode()
    (mini / "train.csv").write_bytes(data)
    with pytest.raises(UserError, match=message) as caught:
        open_source("miniimagenet", mini.parent, "train")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file_name", "rows", "message"),
    [
        (
            "ISIC2018_Task3_Training_GroundTruth.csv",
            [["image", *(x.upper() for x in LESIONS)], ["a", 1, 1, 0, 0, 0, 0, 0]],
            "line 2: 2 classes are marked with 1",
        ),
        (
            "ISIC2018_Task3_Training_GroundTruth.csv",
            [["image", *(x.upper() for x in LESIONS)], ["a", "yes", *"000000"]],
            "line 2: could not convert",
        ),
        (
            "HAM10000_metadata.csv",
            [["image_id", "dx"], ["a", "flu"]],
            "line 2: unknown diagnosis 'flu'",
        ),
    ],
)
def test_a_wrong_label_is_named_by_its_line(tmp_path, file_name, rows, message):
    _csv(tmp_path / file_name, rows)
    with pytest.raises(UserError, match=message):
        open_source(str(tmp_path))
