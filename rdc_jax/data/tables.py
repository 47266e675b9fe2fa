"""Data sets that come as csv tables beside flat image folders, read in place.

* ChestX-ray: ``Data_Entry_2017.csv`` and ``images/`` or ``images_001/images/``, ...
* ISIC 2018 task 3: ``ISIC2018_Task3_Training_GroundTruth.csv`` (one-hot), or
  ``HAM10000_metadata.csv`` (a ``dx`` column), and any image folders.
* miniImageNet after Ravi and Larochelle: ``{train,val,test}.csv`` and ``images/``.
"""

import csv
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from rdc_jax.data.decode import EXTENSIONS
from rdc_jax.data.files import FileSource, from_classes, sort_key
from rdc_jax.data.folder import link_fault
from rdc_jax.data.source import SPLITS, Note, printable, split_names
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

# A csv row, and the image's class in it; no class means the row is not wanted.
_ClassOf = Callable[[dict[str, str]], str | None]


class Table(NamedTuple):
    """A csv file that labels images, and how to read it.

    Attributes:
      path: The csv file.
      split: The split its images belong to.
      key: The column that names the image.
      class_of: The class of a row, or none where the row is to be passed over.
      columns: Every column that must be there.
    """

    path: pathlib.Path
    split: str
    key: str
    class_of: _ClassOf
    columns: tuple[str, ...]


def find_tables(root: pathlib.Path) -> dict[str, Table]:
    """Look for a known csv in ``root`` and its folders: split to table."""
    for file_name, reader in _READERS.items():
        if path := _find(root, file_name):
            return {"test": reader(path)}
    return {
        split: Table(path, split, "filename", _label, ("filename", "label"))
        for split in SPLITS
        for alias in split_names(split)
        if (path := root / f"{alias}.csv").is_file()
    }


def open_table(root: pathlib.Path, table: Table, *, name: str) -> FileSource:
    """Open the images of one table.

    Args:
      root: The folder that holds the images, at most two folders down.
      table: The csv, from ``find_tables``.
      name: The data set's name.

    Returns:
      The source; images that the table names but the disk lacks are noted.

    Raises:
      UserError: The table is malformed, or none of its images is there.
    """
    root = root.resolve()
    where = printable(str(table.path))
    files, notes = _index_images(root)
    rows, missing = [], []
    for key, class_name in _labelled(table, where):
        if path := files.get(key) or files.get(os.path.splitext(key)[0]):
            rows.append((path, class_name))
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
    return from_classes(name, table.split, root, rows, notes)


def _labelled(table: Table, where: str) -> Iterator[tuple[str, str]]:
    """Image key and class of every wanted row; each image once."""
    seen = set()
    for line, row in _read(table, where):
        try:
            class_name = table.class_of(row)
        except ValueError as error:
            raise UserError(f"{where} line {line}: {error}") from error
        if class_name is None:
            continue
        key = row[table.key]
        if key in seen:
            raise UserError(
                f"{where} line {line}: {key!r} is listed twice; list it once"
            )
        seen.add(key)
        yield key, class_name


def _read(table: Table, where: str) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with open(table.path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            lacking = [c for c in table.columns if c not in (reader.fieldnames or ())]
            if lacking:
                found = ", ".join(reader.fieldnames or ()) or "nothing"
                raise UserError(
                    f"{where} lacks the columns {', '.join(lacking)}; it has {found}"
                )
            for row in reader:
                if None in row.values():
                    raise UserError(f"{where} line {reader.line_num}: too few columns")
                yield reader.line_num, row
    except OSError as error:
        raise UserError(f"cannot read {where}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{where} is not a csv file: {error}") from error


def _index_images(root: pathlib.Path) -> tuple[dict[str, str], list[Note]]:
    """Map file names, with and without extension, to paths relative to ``root``."""
    files: dict[str, str] = {}
    notes: list[Note] = []
    for path in _walk(root, root, 2, notes):
        relative = os.path.relpath(path, root)
        stem, extension = os.path.splitext(os.path.basename(path))
        if extension.lower() not in EXTENSIONS:
            continue
        if stem + extension in files:
            text = f"{relative}: the same name as {files[stem + extension]}"
            notes.append(Note("skipped", printable(text)))
            continue
        files[stem + extension] = relative
        files.setdefault(stem, relative)
    return files, notes


def _walk(
    folder: str | pathlib.Path, root: pathlib.Path, depth: int, notes: list[Note]
) -> Iterator[str]:
    """Files at most ``depth`` folders below, in a fixed order."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: sort_key(entry.name))
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if fault := link_fault(entry, root):
            notes.append(Note("skipped", f"{printable(entry.path)}: {fault}"))
        elif entry.is_file():
            yield entry.path
        elif depth:
            yield from _walk(entry.path, root, depth - 1, notes)


def _find(root: pathlib.Path, file_name: str) -> pathlib.Path | None:
    """A file in ``root`` or in one of its folders."""
    candidates: Iterable[pathlib.Path] = [
        root / file_name,
        *root.glob(f"*/{file_name}"),
    ]
    return next((path for path in candidates if path.is_file()), None)


def _chestx(path: pathlib.Path) -> Table:
    columns = ("Image Index", "Finding Labels")
    return Table(path, "test", columns[0], _single_finding, columns)


def _isic_one_hot(path: pathlib.Path) -> Table:
    columns = ("image", *(lesion.upper() for lesion in LESIONS))
    return Table(path, "test", "image", _one_hot, columns)


def _isic_metadata(path: pathlib.Path) -> Table:
    return Table(path, "test", "image_id", _diagnosis, ("image_id", "dx"))


def _label(row: dict[str, str]) -> str:
    return row["label"]


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


_READERS: dict[str, Callable[[pathlib.Path], Table]] = {
    "Data_Entry_2017.csv": _chestx,
    "Data_Entry_2017_v2020.csv": _chestx,
    "ISIC2018_Task3_Training_GroundTruth.csv": _isic_one_hot,
    "HAM10000_metadata.csv": _isic_metadata,
    "HAM10000_metadata": _isic_metadata,
}
