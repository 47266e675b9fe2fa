"""The splits of a folder: from csv tables, split folders, file lists or classes."""

import functools
import pathlib
from collections.abc import Callable
from typing import NamedTuple

from rdc_jax.data.filelist import open_filelist
from rdc_jax.data.folder import class_folders, open_folder, split_folders
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import MissingSplit, find_splits, printable
from rdc_jax.data.tables import find_tables, open_table


class DatasetHandle(NamedTuple):
    """A data set that is there, before any of its splits is opened.

    Attributes:
      name: The data set's name.
      parts: Disjoint parts that together hold every image: splits, or ``all``.
      open: Opens one split.
    """

    name: str
    parts: tuple[str, ...]
    open: Callable[[str], ImageSet]


def find_folder(root: pathlib.Path, name: str) -> DatasetHandle:
    """Find the parts of a folder: known tables, split folders, file lists or classes.

    The first of these that the folder has counts. One without splits gives all its
    classes for training and for testing, and holds none out for validation.
    """
    parts: dict[str, Callable[[], ImageSet]]
    if tables := find_tables(root):
        parts = {
            split: functools.partial(open_table, root, *table, name=name, split=split)
            for split, table in tables.items()
        }
    elif folders := split_folders(root):
        opened = functools.partial(open_folder, name=name, confine=root)
        parts = {s: functools.partial(opened, f, split=s) for s, f in folders.items()}
    elif not class_folders(root) and (
        lists := find_splits(root, ".json", pathlib.Path.is_file)
    ):
        opened = functools.partial(open_filelist, name=name)
        parts = {s: functools.partial(opened, f, split=s) for s, f in lists.items()}
    else:
        parts = {"all": functools.partial(open_folder, root, name=name)}

    def open_part(split: str) -> ImageSet:
        if split in parts:
            return parts[split]()
        if "all" in parts and split != "val":
            return parts["all"]()
        raise MissingSplit(
            f"{name} has no {split} split in {printable(str(root))}; it has "
            f"{', '.join(parts)}"
        )

    return DatasetHandle(name, tuple(parts), open_part)
