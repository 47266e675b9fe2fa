"""What every data source offers: labelled RGB images, class names, an identity."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int, Int32, UInt8

from rdc_jax.runtime.errors import UserError

SPLITS = ("train", "val", "test")
_ALIASES = {
    "train": "train",
    "base": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "novel": "test",
    "all": "all",
}


class UnreadableImage(UserError):
    """An image that cannot be decoded.

    Attributes:
      where: The file or record.
      reason: What is wrong with it.
    """

    def __init__(self, where: str, reason: str):
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}; replace the image or remove it"


class Note(NamedTuple):
    """Something a source noticed while it was opened, without failing.

    Attributes:
      kind: A word or two: ``skipped``, ``empty class``, ``ignored``, ...
      text: One line for people.
      problem: Whether it is a fault in the data, rather than information.
    """

    kind: str
    text: str
    problem: bool = True


@runtime_checkable
class Source(Protocol):
    """Labelled images behind one small interface."""

    @property
    def name(self) -> str:
        """The data set's name; episodes and results carry it."""
        ...

    @property
    def split(self) -> str:
        """``train``, ``val``, ``test``, or ``all`` where there are no splits."""
        ...

    @property
    def class_names(self) -> tuple[str, ...]:
        """One name a class."""
        ...

    @property
    def labels(self) -> Int32[np.ndarray, " len"]:
        """The class of each image, an index into ``class_names``."""
        ...

    def __len__(self) -> int: ...

    def image(self, i: int) -> UInt8[np.ndarray, "h w 3"]:
        """Decode image ``i`` to RGB; ``UnreadableImage`` where that fails."""
        ...

    def locate(self, i: int) -> str:
        """Where image ``i`` comes from, for messages."""
        ...

    def fingerprint(self) -> str:
        """Hexadecimal identity of the images, labels and class names."""
        ...


def canonical_split(split: str) -> str:
    """Return ``train``, ``val``, ``test`` or ``all`` for any accepted name.

    The lineage's ``base`` and ``novel`` are ``train`` and ``test``.

    >>> canonical_split("novel")
    'test'
    """
    try:
        return _ALIASES[split]
    except KeyError:
        raise UserError(
            f"unknown split {split!r}: use one of {', '.join(_ALIASES)}"
        ) from None


def split_names(split: str) -> tuple[str, ...]:
    """Every name that a folder or file of this split may have.

    >>> split_names("val")
    ('val', 'valid', 'validation')
    """
    return tuple(alias for alias, name in _ALIASES.items() if name == split)


def as_labels(
    labels: Sequence[int] | Int[np.ndarray, " len"],
) -> Int32[np.ndarray, " len"]:
    """Make a read-only label array, so that sources can share it."""
    array = np.array(labels, dtype=np.int32)
    array.setflags(write=False)
    return array


def printable(text: str) -> str:
    r"""Make a file name safe to print: undecodable bytes and line ends are escaped.

    >>> printable("a\udcff\nb")
    'a\\udcff\\nb'
    """
    escaped = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return escaped.replace("\n", "\\n").replace("\r", "\\r")
