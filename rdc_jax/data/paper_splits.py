"""From everything a data set's folder holds to the classes that the paper uses.

A data set that is split by class index may be on disk in three ways:

1. complete: the classes of a split are found by their position in the sorted list;
2. split already, into folders with as many classes as the splits have;
3. reduced to the test (novel) classes: when the folder has exactly as many classes
   as that split, they are taken as they are, and a note says so.

Any other number of classes means that something is missing, and positions in the
sorted list would point at wrong classes: an error, not a guess.
"""

import dataclasses
import os
import pathlib

import numpy as np

from rdc_jax.data.datasets import Dataset
from rdc_jax.data.folder import class_folders, split_folders
from rdc_jax.data.image_set import ImageSet, Note
from rdc_jax.data.layouts import DatasetHandle, find_folder
from rdc_jax.data.names import MissingSplit, printable
from rdc_jax.data.tfds import open_tfds
from rdc_jax.runtime.errors import UserError


def find_known(dataset: Dataset, root: pathlib.Path) -> DatasetHandle:
    """One of the paper's data sets, complete, reduced or already split."""
    splits = split_folders(root) if dataset.partition == "index" else {}
    sizes = [(len(class_folders(f)), dataset.size(s)) for s, f in splits.items()]
    if sizes and all(count == expected for count, expected in sizes):
        return find_folder(root, dataset.name)
    if dataset.partition != "given":
        root = _container(dataset, root)
    plain = find_folder(root, dataset.name)

    def open_split(split: str) -> ImageSet:
        if dataset.partition != "given":
            return take_split(dataset, plain.open(plain.parts[0]), split)
        if "all" in plain.parts and split != "all":
            where = printable(str(root))
            raise UserError(f"{where} is not split; expected {dataset.layout}")
        return take_split(dataset, plain.open(split), split)

    return plain._replace(open=open_split)


def find_known_in_tfds(
    dataset: Dataset, data_dir: str | os.PathLike[str] | None, *, tfds_split: str
) -> DatasetHandle:
    """One of the paper's data sets out of TFDS, which has all its classes."""
    name = dataset.tfds
    if name is None:
        raise UserError(f"TFDS has no {dataset.name}; use its files: {dataset.layout}")
    if tfds_split:
        raise UserError(
            f"tfds:{dataset.name} has its splits by the paper's protocol; for TFDS's "
            f"own, use tfds:{name}:{tfds_split}"
        )

    def open_split(split: str) -> ImageSet:
        everything = open_tfds(
            name,
            data_dir=data_dir,
            tfds_split=dataset.tfds_split,
            split="all",
            name=dataset.name,
            keep=dataset.tfds_keep,
        )
        complete = dataset.tfds_images or dataset.images
        there = dataclasses.replace(dataset, images=complete)
        return take_split(there, everything, split)

    return DatasetHandle(dataset.name, ("all",), open_split)


def take_split(dataset: Dataset, images: ImageSet, split: str) -> ImageSet:
    """Keep what the paper uses of all images in a data set's folder.

    ``all`` leaves no class out and accepts any number of classes, for inspection. Notes
    say what differs from the complete data set.

    Raises:
      UserError: The split does not exist, or the number of classes is wrong.
    """
    images = _limited(dataset, images)
    notes = _differences(dataset, images)
    count = len(images.class_names)
    if dataset.partition == "given" or split == "all":
        return images.take(range(count), split=images.split, notes=notes)
    if dataset.partition == "whole" and split != "test":
        raise MissingSplit(
            f"{dataset.name} is a target domain with a test split only, not "
            f"{split}; to train on it, give its folder by path"
        )
    if dataset.partition == "index" and count == dataset.classes:
        return images.take(dataset.members(split), split=split, notes=notes)
    if dataset.partition == "whole" or (count, split) == (dataset.size("test"), "test"):
        return images.take(range(count), split=split, notes=notes)
    raise UserError(
        f"{dataset.name} has {count} classes here, so its {split} classes cannot be "
        f"told apart; expected {dataset.classes} (complete) or {dataset.size('test')} "
        "(the test classes alone, split=test): see python -m rdc_jax.data verify"
    )


def _container(dataset: Dataset, root: pathlib.Path) -> pathlib.Path:
    """The folder that holds the classes: the first with a fitting number of them."""
    folders = [*(root / below for below in dataset.containers), root]
    sizes = {f: len(class_folders(f)) for f in folders if not split_folders(f)}
    fitting = (dataset.classes, dataset.size("test"))
    for folder, size in sizes.items():
        if size in fitting or (dataset.largest and size > dataset.classes):
            return folder
    return next((folder for folder, size in sizes.items() if size), root)


def _limited(dataset: Dataset, images: ImageSet) -> ImageSet:
    """Apply the limits on classes and on images a class."""
    counts = np.bincount(images.labels, minlength=len(images.class_names))
    classes = np.arange(len(counts))
    if dataset.largest and len(counts) > dataset.classes:
        # Stable, so that ties go to the first name in the sorted list.
        classes = np.sort(np.argsort(-counts, kind="stable")[: dataset.classes])
    if dataset.first is None and len(classes) == len(counts):
        return images
    return images.take(classes.tolist(), split=images.split, first=dataset.first)


def _differences(dataset: Dataset, images: ImageSet) -> tuple[Note, ...]:
    """Compare the number of classes and images with the complete data set's."""
    count = len(images.class_names)
    expected = dataset.size(images.split if dataset.partition == "given" else "all")
    if dataset.partition == "index" and count == dataset.size("test"):
        text = (
            f"{count} classes, as many as the test split has: all are taken as they are"
        )
        return (Note("selection", text, problem=False),)
    if count != expected:
        text = f"{count} classes, expected {expected}: partial download or other data?"
        return (Note("count", text),)
    total = dataset.images
    if total is None and dataset.per_class:
        total = dataset.per_class * count
    if total is not None and abs(len(images) - total) > dataset.tolerance * total:
        text = (
            f"{len(images):,} images, the complete data set has {total:,}; fine for "
            "trials, not beside published results"
        )
        return (Note("count", text),)
    return ()
