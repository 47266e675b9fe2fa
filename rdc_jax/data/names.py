"""Names of splits, classes and files: what is accepted, how they sort and print."""

import itertools
import pathlib
import unicodedata
from collections.abc import Callable

from rdc_jax.runtime.errors import UserError

_SPLITS = {
    "train": ("train", "base"),
    "val": ("val", "valid", "validation"),
    "test": ("test", "novel"),
    "all": ("all",),
}


class MissingSplit(UserError):
    """The data set is there, and has no such split.

    What can do without a split, as training can without validation, catches this.
    """


def canonical_split(split: str) -> str:
    """Return ``train``, ``val``, ``test`` or ``all`` for any accepted name.

    ``base`` and ``novel``, CrossDomainFewShot's names, are ``train`` and ``test``.

    >>> canonical_split("novel")
    'test'
    """
    for name, aliases in _SPLITS.items():
        if split in aliases:
            return name
    known = ", ".join(itertools.chain(*_SPLITS.values()))
    raise UserError(f"unknown split {split!r}: use one of {known}")


def split_names(split: str) -> tuple[str, ...]:
    """Every name that a folder or file of this split may have.

    >>> split_names("val")
    ('val', 'valid', 'validation')
    """
    return _SPLITS.get(split, ())


def find_splits(
    root: pathlib.Path, suffix: str, exists: Callable[[pathlib.Path], object]
) -> dict[str, pathlib.Path]:
    """Find what ``root`` has for ``train``, ``val`` and ``test``, by any of its names.

    ``exists`` says whether a path, such as ``root/train.csv``, is there.
    """
    paths = {
        split: [
            path for n in split_names(split) if exists(path := root / f"{n}{suffix}")
        ]
        for split in ("train", "val", "test")
    }
    return {split: found[0] for split, found in paths.items() if found}


def sort_key(name: str) -> tuple[str, str]:
    """Order names by code point, however the file system composes accents."""
    return unicodedata.normalize("NFC", name), name


def printable(text: str) -> str:
    r"""Make a file name safe to print: undecodable bytes and line ends are escaped.

    >>> printable("a\udcff\nb")
    'a\\udcff\\nb'
    """
    escaped = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return escaped.replace("\n", "\\n").replace("\r", "\\r")
