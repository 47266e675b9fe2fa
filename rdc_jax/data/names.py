"""Names of splits, classes and files: what is accepted, how they sort and print."""

import unicodedata

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


class MissingSplit(UserError):
    """The data set is there, and has no such split.

    What can do without a split, as training can without validation, catches this.
    """


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
