"""CrossDomainFewShot's json lists: label_names, image_names and image_labels."""

import collections
import json
import os
import pathlib

import numpy as np

from rdc_jax.data.image_set import ImageSet, Note, from_files
from rdc_jax.data.names import printable
from rdc_jax.runtime.errors import UserError

_FIELDS = {"label_names": str, "image_names": str, "image_labels": int}


def open_filelist(
    path: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
    split: str = "all",
) -> ImageSet:
    """Open a file list.

    Relative image names count from the json's folder, or from ``data_dir`` when the
    first of them is not there; they may not climb out of it. Absolute ones are taken
    as they are. Label names without images are left out. The images keep the list's
    order, and the set is named ``<folder>-<file>`` by default.

    Raises:
      UserError: The list is malformed, or an image is missing or listed twice.
    """
    path = pathlib.Path(path)
    where = printable(str(path))
    names, images, labels = _read(path, where)
    full = _resolve(images, path.parent, data_dir, where)
    root = os.path.commonpath({os.path.dirname(image) for image in full})
    prefix = len(os.path.join(root, ""))
    used, positions = np.unique(labels, return_inverse=True)
    notes = []
    if missing := len(names) - len(used):
        text = f"{missing} of {len(names)} label names have no image in {where}"
        notes.append(Note("selection", text, problem=False))
    return from_files(
        name or f"{path.resolve().parent.name}-{path.stem}",
        split,
        root,
        [image[prefix:] for image in full],
        positions,
        [names[label] for label in used],
        notes,
    )


def _read(path: pathlib.Path, where: str) -> tuple[list[str], list[str], list[int]]:
    """Parse and validate everything that needs no look at the images."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot read {where}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # bad json, bad UTF-8, deep nesting
        raise UserError(f"{where} is not valid json: {error}") from error
    if not isinstance(content, dict):
        raise UserError(f"{where} holds a {type(content).__name__}, not a json object")
    for field, kind in _FIELDS.items():
        if field not in content:
            raise UserError(f"{where} lacks {field!r}; it needs {', '.join(_FIELDS)}")
        if not isinstance(values := content[field], list):
            kind_there = type(values).__name__
            raise UserError(f"{where}: {field} is a {kind_there}, not a list")
        for row, value in enumerate(values):
            if type(value) is not kind:  # True is an int to isinstance
                raise UserError(
                    f"{where}: {field}[{row}] is {value!r}, not of type {kind.__name__}"
                )
    names, images, labels = (content[field] for field in _FIELDS)
    if len(images) != len(labels):
        raise UserError(
            f"{where} has {len(images)} image_names but {len(labels)} image_labels; "
            "give one label an image"
        )
    if not images:
        raise UserError(f"{where} lists no images")
    for row, label in enumerate(labels):
        if not 0 <= label < len(names):
            raise UserError(
                f"{where}: image_labels[{row}] is {label}, outside 0..{len(names) - 1}"
            )
    _check_unique(names, "label_names", where)
    return names, images, labels


def _check_unique(values: list[str], field: str, where: str) -> None:
    value, times = collections.Counter(values).most_common(1)[0]
    if times > 1:
        raise UserError(
            f"{where}: {field} has {printable(value)!r} {times} times; list it once"
        )


def _resolve(
    images: list[str],
    folder: pathlib.Path,
    data_dir: str | os.PathLike[str] | None,
    where: str,
) -> list[str]:
    """Find every image, or say which is missing, repeated or out of bounds.

    Paths are strings: objects would take minutes for a list of a million.
    """
    bases = [os.path.realpath(base) for base in (folder, data_dir) if base]
    base = next(
        (b for b in bases if os.path.isfile(os.path.join(b, images[0]))), bases[0]
    )
    full = [os.path.normpath(os.path.join(base, image)) for image in images]
    inside = os.path.join(base, "")
    for image, target in zip(images, full, strict=True):
        if not os.path.isabs(image) and not f"{target}{os.sep}".startswith(inside):
            raise UserError(
                f"{where}: {printable(image)!r} leads outside {base}; use a path "
                "inside it, or an absolute one"
            )
    _check_unique(full, "image_names", where)
    missing = [i for i, target in enumerate(full) if not os.path.isfile(target)]
    if missing:
        raise UserError(
            f"{where}: {len(missing)} of {len(images)} images are missing, first "
            f"{printable(images[missing[0]])!r}; looked in {' and '.join(bases)}"
        )
    return full
