"""Open images by one string: a known name, a folder, a json, TFDS or synthetic."""

import difflib
import functools
import logging
import os
import pathlib
from collections.abc import Callable

from rdc_jax.data.datasets import DATASETS
from rdc_jax.data.filelist import open_filelist
from rdc_jax.data.folder import class_folders
from rdc_jax.data.image_set import ImageSet, shortened
from rdc_jax.data.layouts import DatasetHandle, find_folder
from rdc_jax.data.names import canonical_split, printable
from rdc_jax.data.paper_splits import find_known, find_known_in_tfds
from rdc_jax.data.synthetic import DOMAINS, open_synthetic
from rdc_jax.data.tfds import open_tfds
from rdc_jax.runtime.errors import UserError

_LOG = logging.getLogger(__name__)
_LINES = 5  # of one kind of note: a folder may have thousands
_SPECS = (
    "a known name or a folder under data_dir, a path to a folder, a .json file list, "
    "tfds:<name> or synthetic:<name>"
)


Opener = Callable[..., ImageSet]
"""Opens a data source: ``opener(argument, split=..., data_dir=...)``."""

OPENERS: dict[str, Opener] = {}
"""Those that were registered, by name."""


def register_source(name: str) -> Callable[[Opener], Opener]:
    """Let ``NAME`` and ``NAME:ARGUMENT`` open a data source of your own.

    The function gets the argument (empty where none is given), the split (``train``,
    ``val``, ``test`` or ``all``) and ``data_dir``. It raises ``MissingSplit`` for a
    split that it does not have. The first line of its docstring is listed.

    Raises:
      ValueError: The name is taken.
    """
    if name in (*OPENERS, *DATASETS, "tfds", "synthetic"):
        raise ValueError(f"there is a data source {name!r} already: take another name")

    def register(opener: Opener) -> Opener:
        OPENERS[name] = opener
        return opener

    return register


def open_source(
    spec: str, data_dir: str | os.PathLike[str] | None = None, split: str = "test"
) -> ImageSet:
    """Open labelled images.

    Args:
      spec: One of

        * ``cub``: one of the paper's data sets (``DATASETS``), under ``data_dir``;
        * ``my_photos``: any other image folder under ``data_dir``;
        * ``/path/to/folder``: an image folder as it is, all its classes;
        * ``novel.json``: a file list as CrossDomainFewShot writes it;
        * ``tfds:eurosat/rgb:train``: a prepared TFDS data set as it is;
          ``tfds:cub``: one of the paper's, by its protocol, out of TFDS;
        * ``synthetic:glyphs``: a built-in domain, which needs no files;
        * a name that ``register_source`` was given.
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
    for kind, text, problem in shortened(images.notes, _LINES):
        level = logging.WARNING if problem else logging.INFO
        _LOG.log(level, "%s: %s: %s", images.name, kind, text)
    return images


def find_source(
    spec: str, data_dir: str | os.PathLike[str] | None = None
) -> DatasetHandle:
    """Find a data set and its splits; see ``open_source`` for the arguments."""
    kind, colon, rest = spec.partition(":")
    if not spec or (kind in ("tfds", "synthetic") and colon and not rest):
        raise UserError(f"data set {spec!r} has no name; give {_SPECS}")
    if kind in OPENERS:
        return _whole(spec, functools.partial(OPENERS[kind], rest, data_dir=data_dir))
    if kind == "synthetic" and rest:
        return _whole(rest, functools.partial(open_synthetic, rest))
    if kind == "tfds" and rest:
        name, _, part = rest.partition(":")
        if dataset := DATASETS.get(name.lower()):
            return find_known_in_tfds(dataset, data_dir, tfds_split=part)
        opened = functools.partial(open_tfds, name, data_dir=data_dir)
        return _whole(name, functools.partial(opened, tfds_split=part))
    base, path = _existing(data_dir), pathlib.Path(spec).expanduser()
    path = path if os.path.exists(path) else base / path
    if spec.endswith(".json"):
        return _whole(path.stem, functools.partial(open_filelist, path, data_dir=base))
    if os.sep in spec or spec.startswith(("~", ".")):
        if path.is_dir():
            return find_folder(path, path.resolve().name)
        raise UserError(f"there is no folder {printable(str(path))}")
    names = class_folders(base)
    # Upper and lower case may differ, as in miniImageNet.
    same = [name for name in names if name.lower() == spec.lower()]
    if not same:
        raise UserError(_unknown(spec, base))
    folder = base / (spec if spec in same else same[0])
    if dataset := DATASETS.get(spec.lower()):
        return find_known(dataset, folder)
    return find_folder(folder, spec)


def _whole(name: str, opened: Callable[..., ImageSet]) -> DatasetHandle:
    """A data set in one part, whose ``opened`` knows its splits."""
    return DatasetHandle(name, ("all",), lambda split: opened(split=split))


def names_under(data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Names of the folders in ``data_dir``, or here."""
    return [printable(name) for name in class_folders(_existing(data_dir))]


def _existing(data_dir: str | os.PathLike[str] | None) -> pathlib.Path:
    base = pathlib.Path(data_dir or ".").expanduser()
    if not base.is_dir():
        raise UserError(f"data_dir {printable(str(base))} is not a folder")
    return base


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
    known = dict.fromkeys([*DATASETS, *map(str.lower, here), *OPENERS, *built_in])
    close = difflib.get_close_matches(spec, known, n=3)
    if spec in DOMAINS:
        close = [f"synthetic:{spec}"]
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"unknown data set {spec!r}: {meant}{holds}; give {_SPECS}"
