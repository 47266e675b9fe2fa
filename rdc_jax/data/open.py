"""Open images by one string: a known name, a folder, a json, TFDS or synthetic."""

import collections
import difflib
import functools
import logging
import os
import pathlib
from collections.abc import Callable
from typing import NamedTuple

from rdc_jax.data.datasets import DATASETS, Dataset
from rdc_jax.data.filelist import open_filelist
from rdc_jax.data.folder import class_folders, open_folder, split_folders
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import (
    SPLITS,
    MissingSplit,
    canonical_split,
    printable,
    split_names,
)
from rdc_jax.data.paper_splits import take_split
from rdc_jax.data.synthetic import DOMAINS, open_synthetic
from rdc_jax.data.tables import find_tables, open_table
from rdc_jax.data.tfds import open_tfds
from rdc_jax.runtime.errors import UserError

_LOG = logging.getLogger(__name__)
_LINES = 5  # of one kind of note
_SPECS = (
    "a known name or a folder under data_dir, a path to a folder, a .json file list, "
    "tfds:<name> or synthetic:<name>"
)


class DatasetHandle(NamedTuple):
    """A data set that is there, before any of its splits is opened.

    Attributes:
      name: The data set's name.
      parts: Disjoint parts that together hold every image: splits, or ``all``.
      open: Opens one split.
      dataset: What is known of it, when it was asked for by a known name.
    """

    name: str
    parts: tuple[str, ...]
    open: Callable[[str], ImageSet]
    dataset: Dataset | None = None


def open_source(
    spec: str, data_dir: str | os.PathLike[str] | None = None, split: str = "test"
) -> ImageSet:
    """Open labelled images.

    Args:
      spec: One of

        * ``cub``: one of the paper's data sets (``DATASETS``), under ``data_dir``;
        * ``my_photos``: any other image folder under ``data_dir``;
        * ``/path/to/folder``: an image folder as it is, all its classes;
        * ``novel.json``: a file list of the lineage;
        * ``tfds:eurosat/rgb:train``: a prepared TFDS data set as it is;
          ``tfds:cub``: one of the paper's, by its protocol, out of TFDS;
        * ``synthetic:glyphs``: a built-in domain, which needs no files.
      data_dir: Where names are looked for; the current folder when not given.
      split: ``train`` (or ``base``), ``val``, ``test`` (or ``novel``). A folder without
        splits gives all its classes for ``train`` and ``test``.

    Returns:
      The images. What was noticed on the way is logged, and kept in their ``notes``.

    Raises:
      MissingSplit: The data set is there, and has no such split.
      UserError: There is no such data set, or it is malformed.
    """
    images = find_source(spec, data_dir).open(canonical_split(split))
    _log_notes(images)
    return images


def find_source(
    spec: str, data_dir: str | os.PathLike[str] | None = None
) -> DatasetHandle:
    """Find a data set and its splits; see ``open_source`` for the arguments."""
    kind, _, rest = spec.partition(":")
    if not spec or (kind in ("tfds", "synthetic") and not rest):
        raise UserError(f"data set {spec!r} has no name; give {_SPECS}")
    if kind == "synthetic":
        return _whole(rest, functools.partial(open_synthetic, rest))
    if kind == "tfds":
        return _tfds(rest, data_dir)
    base = _existing(data_dir)
    if spec.endswith(".json"):
        path = pathlib.Path(spec).expanduser()
        path = path if path.exists() else base / spec
        opened = functools.partial(open_filelist, path, data_dir=base)
        return _whole(path.stem, opened)
    if os.sep in spec or spec.startswith(("~", ".")):
        path = pathlib.Path(spec).expanduser()
        path = path if path.is_dir() or not data_dir else base / spec
        if path.is_dir():
            return _folder(path, path.resolve().name)
        raise UserError(f"there is no folder {printable(str(path))}")
    names = class_folders(base)
    # The case of letters may differ, as in miniImageNet.
    same = [name for name in names if name.lower() == spec.lower()]
    if not same:
        raise UserError(_unknown(spec, base))
    folder = base / (spec if spec in same else same[0])
    if dataset := DATASETS.get(spec.lower()):
        return _known(dataset, folder)
    return _folder(folder, spec)


def names_under(data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Names of the folders in ``data_dir``, or here."""
    return [printable(name) for name in class_folders(_existing(data_dir))]


def _existing(data_dir: str | os.PathLike[str] | None) -> pathlib.Path:
    base = pathlib.Path(data_dir or ".").expanduser()
    if not base.is_dir():
        raise UserError(f"data_dir {printable(str(base))} is not a folder")
    return base


def _whole(name: str, opened: Callable[..., ImageSet]) -> DatasetHandle:
    """A data set in one part, whose ``opened`` knows its splits."""
    return DatasetHandle(name, ("all",), lambda split: opened(split=split))


def _tfds(rest: str, data_dir: str | os.PathLike[str] | None) -> DatasetHandle:
    name, _, tfds_split = rest.partition(":")
    opened = functools.partial(open_tfds, data_dir=data_dir)
    dataset = DATASETS.get(name.lower())
    if dataset is None:
        return _whole(name, functools.partial(opened, name, tfds_split=tfds_split))
    if dataset.tfds is None:
        raise UserError(f"TFDS has no {name}; use its files: {dataset.layout}")
    if tfds_split:
        raise UserError(
            f"tfds:{name} has its splits by the paper's protocol; for TFDS's own, use "
            f"tfds:{dataset.tfds}:{tfds_split}"
        )
    everything = functools.partial(
        opened,
        dataset.tfds,
        tfds_split=dataset.tfds_split,
        split="all",
        name=dataset.name,
        keep=dataset.tfds_keep,
    )
    handle = _whole(
        dataset.name, lambda split: take_split(dataset.in_tfds(), everything(), split)
    )
    return handle._replace(dataset=dataset)


def _known(dataset: Dataset, root: pathlib.Path) -> DatasetHandle:
    """One of the paper's data sets, complete, reduced or already split."""
    splits = split_folders(root) if dataset.partition == "index" else {}
    sizes = [(len(class_folders(f)), dataset.size(s)) for s, f in splits.items()]
    if sizes and all(count == expected for count, expected in sizes):
        # Somebody has applied the rule already.
        return _folder(root, dataset.name)._replace(dataset=dataset)
    if dataset.partition != "given":
        root = _container(dataset, root)
    plain = _folder(root, dataset.name)

    def open_split(split: str) -> ImageSet:
        if dataset.partition != "given":
            return take_split(dataset, plain.open(plain.parts[0]), split)
        if "all" in plain.parts and split != "all":
            where = printable(str(root))
            raise UserError(f"{where} is not split; expected {dataset.layout}")
        return take_split(dataset, plain.open(split), split)

    return DatasetHandle(dataset.name, plain.parts, open_split, dataset)


def _container(dataset: Dataset, root: pathlib.Path) -> pathlib.Path:
    """The folder that holds the classes: the first with a fitting number of them."""
    folders = [root / sub for sub in dataset.containers]
    sizes = {f: len(class_folders(f)) for f in folders if not split_folders(f)}
    fitting = (dataset.classes, dataset.size("test"))
    for folder, size in sizes.items():
        if size in fitting or (dataset.largest and size > dataset.classes):
            return folder
    return next((folder for folder, size in sizes.items() if size), root)


def _folder(root: pathlib.Path, name: str) -> DatasetHandle:
    """Any folder, by the first way in which it describes its images."""
    parts: dict[str, Callable[[], ImageSet]]
    if tables := find_tables(root):
        opened = functools.partial(open_table, root, name=name)
        parts = {s: functools.partial(opened, *t, split=s) for s, t in tables.items()}
    elif folders := split_folders(root):
        opened = functools.partial(open_folder, name=name, confine=root)
        parts = {s: functools.partial(opened, f, split=s) for s, f in folders.items()}
    elif not class_folders(root) and (lists := _filelists(root)):
        opened = functools.partial(open_filelist, name=name)
        parts = {s: functools.partial(opened, f, split=s) for s, f in lists.items()}
    else:
        parts = {"all": functools.partial(open_folder, root, name=name)}

    def open_part(split: str) -> ImageSet:
        if split in parts:
            return parts[split]()
        if "all" in parts and split != "val":  # no classes are held out
            return parts["all"]()
        raise MissingSplit(
            f"{name} has no {split} split in {printable(str(root))}; it has "
            f"{', '.join(parts)}"
        )

    return DatasetHandle(name, tuple(parts), open_part)


def _filelists(root: pathlib.Path) -> dict[str, pathlib.Path]:
    return {
        split: path
        for split in SPLITS
        for alias in split_names(split)
        if (path := root / f"{alias}.json").is_file()
    }


def _unknown(spec: str, base: pathlib.Path) -> str:
    where = printable(str(base))
    here = names_under(base)
    holds = f"{where} holds {', '.join(here[:20]) or 'no folders'}"
    if dataset := DATASETS.get(spec.lower()):
        other = f", or use tfds:{dataset.name}" if dataset.tfds else ""
        return (
            f"{dataset.name} is not in {where}; get it from {dataset.origin} and put "
            f"{dataset.layout} in {where}/{dataset.name}{other}; {holds}"
        )
    built_in = [f"synthetic:{name}" for name in DOMAINS]
    others = [name for name in here if name.lower() not in DATASETS]
    known = [*DATASETS, *others, *built_in]
    close = difflib.get_close_matches(spec, known, n=3)
    if spec in DOMAINS:
        close = [f"synthetic:{spec}"]
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"unknown data set {spec!r}: {meant}{holds}; give {_SPECS}"


def _log_notes(images: ImageSet) -> None:
    """Log what was noticed: a few lines of each kind, not thousands."""
    lines: collections.Counter[str] = collections.Counter()
    for kind, text, problem in images.notes:
        lines[kind] += 1
        if lines[kind] <= _LINES:
            level = logging.WARNING if problem else logging.INFO
            _LOG.log(level, "%s: %s: %s", images.name, kind, text)
    for kind, times in lines.items():
        if times > _LINES:
            _LOG.warning("%s: %s: %d more", images.name, kind, times - _LINES)
