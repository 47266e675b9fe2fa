"""Real images: all ten folders open, verify and look like what they are."""

import numpy as np
import pytest

from rdc_jax.data.open import open_source
from rdc_jax.data.verify import verify

_FOLDERS = {  # name, split: classes, images, pixels a side
    ("miniimagenet", "train"): (64, 19_200, 84),
    ("miniimagenet", "val"): (16, 640, 84),
    ("cub", "test"): (50, 2_000, 96),
    ("cars", "test"): (49, 1_916, 96),
    ("miniplaces", "test"): (25, 1_999, 96),
    ("flowers102", "test"): (25, 1_000, 96),
    ("cropdisease", "test"): (38, 2_280, 96),
    ("eurosat", "test"): (10, 2_000, 64),
    ("isic", "test"): (7, 927, 96),
    ("chestx", "test"): (7, 1_090, 96),
}

# The originals hold some pictures twice.
_DUPLICATES = {("miniimagenet", "train"): 1, ("cropdisease", "test"): 1}


@pytest.mark.parametrize(("name", "split"), _FOLDERS)
def test_a_folder_opens_with_the_right_counts(shared_dir, name, split):
    source = open_source(name, shared_dir / "data", split)
    classes, images, side = _FOLDERS[name, split]
    assert source.name == name
    assert len(source.class_names) == classes
    assert len(source) == images
    assert np.bincount(source.labels).min() >= 20
    for i in np.linspace(0, len(source) - 1, 8, dtype=int):
        assert source.image(int(i)).shape == (side, side, 3)
        assert f"/{source.class_names[source.labels[i]]}/" in source.locate(int(i))


def _findings(shared_dir, name, split):
    source = open_source(name, shared_dir / "data", split)
    report = verify(source)
    return {finding.kind for finding in report.findings}, report


def test_small_folders_verify(shared_dir):
    """Reduced copies differ in their counts, and in nothing else."""
    for name, expected in (("isic", {"count"}), ("flowers102", set())):
        kinds, report = _findings(shared_dir, name, "test")
        assert kinds == expected
        assert report.smallest == report.largest == (96, 96)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "split"), _FOLDERS)
def test_all_folders_verify(shared_dir, name, split):
    kinds, report = _findings(shared_dir, name, split)
    assert kinds <= {"count", "duplicate"}
    duplicates = sum(finding.kind == "duplicate" for finding in report.findings)
    assert duplicates == _DUPLICATES.get((name, split), 0)
    assert report.images == _FOLDERS[name, split][1]
    assert all(row.readable == row.images for row in report.classes)


def test_reduced_cub_and_cars_are_the_test_classes(shared_dir):
    cub = open_source("cub", shared_dir / "data")
    numbers = [int(name.split(".")[0]) for name in cub.class_names]
    assert numbers == list(range(4, 201, 4))  # index mod 4 = 3, counted from 1
    assert [note.problem for note in cub.notes] == [False]
