"""Data sets that come as csv tables beside flat image folders, read in place.

* ChestX-ray: ``Data_Entry_2017.csv`` and ``images/`` or ``images_001/images/``, ...
* ISIC 2018 task 3: ``ISIC2018_Task3_Training_GroundTruth.csv`` (one-hot), or
  ``HAM10000_metadata.csv`` (a ``dx`` column), and any image folders.
* miniImageNet after Ravi and Larochelle: ``{train,val,test}.csv`` and ``images/``.
"""

import csv
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rdc_jax.data.folder import Listing, is_image
from rdc_jax.data.image_set import ImageSet, Note, from_classes
from rdc_jax.data.names import find_splits, printable
from rdc_jax.runtime.errors import UserError

FINDINGS = (
    "Atelectasis",
    "Cardiomegaly",
    "Effusion",
    "Infiltration",
    "Mass",
    "Nodule",
    "Pneumothorax",
)
LESIONS = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")


class Table(NamedTuple):
    """How a csv file labels images.

    Attributes:
      columns: Those that must be there; the first names the image.
      class_of: The class of a row, or none where the row is to be passed over.
    """

    columns: tuple[str, ...]
    class_of: Callable[[dict[str, str]], str | None]


def find_tables(root: pathlib.Path) -> dict[str, tuple[pathlib.Path, Table]]:
    """Look for a known csv in ``root`` and its folders: file and table by split."""
    for file_name, table in _TABLES.items():
        for path in (root / file_name, *root.glob(f"*/{file_name}")):
            if path.is_file():
                return {"test": (path, table)}
    by_split = Table(("filename", "label"), lambda row: row["label"])
    files = find_splits(root, ".csv", pathlib.Path.is_file)
    return {split: (path, by_split) for split, path in files.items()}


def open_table(
    root: pathlib.Path, path: pathlib.Path, table: Table, *, name: str, split: str
) -> ImageSet:
    """Open the images of one table; they are at most two folders below ``root``.

    Images that the table names but the disk lacks are noted.

    Raises:
      UserError: The table is malformed, or none of its images is there.
    """
    root = root.resolve()
    where = printable(str(path))
    files, notes = _index_images(root)
    rows, missing = [], []
    for key, class_name in _labelled(path, table, where):
        if file := files.get(key) or files.get(os.path.splitext(key)[0]):
            rows.append((file, class_name))
        else:
            missing.append(key)
    total = len(rows) + len(missing)
    if not rows:
        first = f" ({notes[0].text})" if notes else ""
        raise UserError(
            f"none of the {total} images that {where} asks for is in the folders of "
            f"{printable(str(root))}{first}; unpack the image archives there"
        )
    if missing:
        text = f"{len(missing)} of {total} images of {where} are not there"
        notes.append(Note("missing", f"{text}, first {printable(missing[0])}"))
    return from_classes(name, split, root, rows, notes)


def _labelled(
    path: pathlib.Path, table: Table, where: str
) -> Iterator[tuple[str, str]]:
    """Image key and class of every wanted row; each image once."""
    seen, line = set(), 1
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            header = reader.fieldnames or ()
            if lacking := [c for c in table.columns if c not in header]:
                raise UserError(
                    f"{where} lacks the columns {', '.join(lacking)}; it has "
                    f"{', '.join(header) or 'nothing'}"
                )
            for row in reader:
                line, key = reader.line_num, row[table.columns[0]]
                if None in row.values():
                    raise ValueError("too few columns")
                if (class_name := table.class_of(row)) is None:
                    continue
                if key in seen:
                    raise ValueError(f"{key!r} is listed twice; list it once")
                seen.add(key)
                yield key, class_name
    except OSError as error:
        raise UserError(f"cannot read {where}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{where} is not a csv file: {error}") from error
    except ValueError as error:
        raise UserError(f"{where} line {line}: {error}") from error


def _index_images(root: pathlib.Path) -> tuple[dict[str, str], list[Note]]:
    """Map file names, with and without extension, to paths relative to ``root``."""
    files: dict[str, str] = {}
    listing = Listing(root)
    for path in _walk(root, listing, depth=2):
        name = os.path.basename(path)
        relative = os.path.relpath(path, root)
        if name in files:
            text = f"{relative}: the same name as {files[name]}"
            listing.notes.append(Note("skipped", printable(text)))
        elif is_image(name):
            files[name] = relative
            files.setdefault(os.path.splitext(name)[0], relative)
    return files, listing.notes


def _walk(folder: str | pathlib.Path, listing: Listing, *, depth: int) -> Iterator[str]:
    """Files at most ``depth`` folders below, in a fixed order."""
    for entry in listing.entries(folder):
        if entry.is_file():
            yield entry.path
        elif entry.is_dir() and depth:
            yield from _walk(entry.path, listing, depth=depth - 1)


def _single_finding(row: dict[str, str]) -> str | None:
    # A single finding contains no "|", so images with several never match.
    finding = row["Finding Labels"]
    return finding if finding in FINDINGS else None


def _one_hot(row: dict[str, str]) -> str:
    marked = [lesion for lesion in LESIONS if float(row[lesion.upper()]) == 1]
    if len(marked) != 1:
        raise ValueError(f"{len(marked)} classes are marked with 1, expected one")
    return marked[0]


def _diagnosis(row: dict[str, str]) -> str:
    if row["dx"] not in LESIONS:
        raise ValueError(f"unknown diagnosis {row['dx']!r}")
    return row["dx"]


_CHESTX = Table(("Image Index", "Finding Labels"), _single_finding)
_ISIC = Table(("image", *(lesion.upper() for lesion in LESIONS)), _one_hot)
_HAM10000 = Table(("image_id", "dx"), _diagnosis)

_TABLES = {
    "Data_Entry_2017.csv": _CHESTX,
    "Data_Entry_2017_v2020.csv": _CHESTX,
    "ISIC2018_Task3_Training_GroundTruth.csv": _ISIC,
    "HAM10000_metadata.csv": _HAM10000,
    "HAM10000_metadata": _HAM10000,
}
