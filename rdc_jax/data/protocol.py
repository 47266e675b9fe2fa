"""From everything a data set's folder holds to the classes that the paper uses.

A data set that is split by class index may be on disk in two ways:

1. complete: the classes of a split are found by their position in the sorted list;
2. reduced to the test (novel) classes: when the folder has exactly as many classes
   as that split, they are taken as they are, and a note says so.

Any other number of classes means that something is missing, and positions in the
sorted list would point at wrong classes: an error, not a guess.
"""

from typing import TypeVar

import numpy as np

from rdc_jax.data.datasets import Dataset
from rdc_jax.data.files import FileSource
from rdc_jax.data.source import Note
from rdc_jax.data.tfds_source import TfdsSource
from rdc_jax.runtime.errors import UserError

SourceT = TypeVar("SourceT", FileSource, TfdsSource)


def select(dataset: Dataset, source: SourceT, split: str) -> SourceT:
    """Keep what the paper's protocol uses of a data set.

    Args:
      dataset: What is known of it.
      source: Everything that was found.
      split: ``train``, ``val`` or ``test``; ``all`` leaves no class out and accepts
        any number of classes, for inspection.

    Returns:
      The split, with notes on whatever differs from the complete data set.

    Raises:
      UserError: The split does not exist, or the number of classes is wrong.
    """
    source = _trimmed(dataset, source)
    notes = check(dataset, source)
    found = len(source.class_names)
    if dataset.partition == "given" or split == "all":
        return _keep(source, range(found), split=source.split, notes=notes)
    if dataset.partition == "whole":
        if split != "test":
            raise UserError(
                f"{dataset.name} is a target domain with a test split only, not "
                f"{split}; to train on it, give its folder by path"
            )
        return _keep(source, range(found), split=split, notes=notes)
    if found == dataset.classes:
        return _keep(source, dataset.members(split), split=split, notes=notes)
    if found == dataset.size("test") and split == "test":
        return _keep(source, range(found), split=split, notes=notes)
    raise UserError(
        f"{dataset.name} has {found} classes here, so its {split} classes cannot be "
        f"told apart; expected {dataset.classes} (complete) or {dataset.size('test')} "
        "(the test classes alone, split=test): see python -m rdc_jax.data verify"
    )


def check(dataset: Dataset, source: SourceT) -> tuple[Note, ...]:
    """Compare the number of classes and images with the complete data set's."""
    found = len(source.class_names)
    expected = dataset.size(source.split if dataset.partition == "given" else "all")
    if dataset.partition == "index" and found == dataset.size("test"):
        text = (
            f"{found} classes, as many as the test split has: all are taken as they are"
        )
        return (Note("selection", text, problem=False),)
    if found != expected:
        text = f"{found} classes, expected {expected}: partial download or other data?"
        return (Note("count", text),)
    total = _total(dataset, source)
    if total is not None and abs(len(source) - total) > dataset.tolerance * total:
        text = f"{len(source):,} images, the complete data set has {total:,}"
        return (Note("count", text),)
    return ()


def _total(dataset: Dataset, source: SourceT) -> int | None:
    """Images that the complete data set has in these classes."""
    if isinstance(source, TfdsSource) and dataset.tfds_images:
        return dataset.tfds_images
    if dataset.images:
        return dataset.images
    if isinstance(dataset.per_class, int):
        return dataset.per_class * len(source.class_names)
    return None


def _trimmed(dataset: Dataset, source: SourceT) -> SourceT:
    """Apply the limits on classes and on images a class."""
    counts = np.bincount(source.labels, minlength=len(source.class_names))
    classes = range(len(counts))
    if dataset.largest and len(counts) > dataset.classes:
        # Stable, so that ties go to the first name in the sorted list.
        by_size = np.argsort(-counts, kind="stable")[: dataset.classes]
        classes = np.sort(by_size).tolist()
    if dataset.first is None and len(classes) == len(counts):
        return source
    return _keep(source, classes, split=source.split, first=dataset.first)


def _keep(
    source: SourceT,
    classes: range | list[int],
    *,
    split: str,
    first: int | None = None,
    notes: tuple[Note, ...] = (),
) -> SourceT:
    """Keep some classes, and of each the first images; labels are counted anew."""
    rows = [np.flatnonzero(source.labels == label)[:first] for label in classes]
    return source.take(
        np.concatenate(rows),
        np.repeat(np.arange(len(rows)), [len(r) for r in rows]),
        tuple(source.class_names[label] for label in classes),
        split=split,
        notes=notes,
    )
