"""A source made of image files, whatever described them: folders, json or csv."""

import collections
import dataclasses
import hashlib
import os
import pathlib
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int, Int32, UInt8
from PIL import Image

from rdc_jax.data.decode import DECODE_VERSION, read_image, read_picture
from rdc_jax.data.parallel import threaded_map
from rdc_jax.data.source import Note, as_labels, printable
from rdc_jax.runtime.errors import UserError

# (path, size, mtime_ns) -> digest; a file is read once a process while unchanged.
_digests: dict[tuple[str, int, int], bytes] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class FileSource:
    """Labelled image files under one root; see ``Source``.

    Attributes:
      name: The data set's name.
      split: The split these files belong to.
      root: The folder that ``paths`` are relative to.
      paths: One path an image.
      labels: One class index an image.
      class_names: One name a class.
      notes: What was noticed while the files were collected.
    """

    name: str
    split: str
    root: pathlib.Path
    paths: tuple[str, ...]
    labels: Int32[np.ndarray, " len"]
    class_names: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.paths)

    def image(self, i: int) -> UInt8[np.ndarray, "h w 3"]:
        """Decode image ``i`` to RGB."""
        return read_image(self.root / self.paths[i])

    def picture(self, i: int) -> Image.Image:
        """Decode image ``i`` to a picture in RGB."""
        return read_picture(self.root / self.paths[i])

    def locate(self, i: int) -> str:
        """The path of image ``i``."""
        return printable(str(self.root / self.paths[i]))

    def fingerprint(self) -> str:
        """Identity of content: relative paths, labels, class names and file bytes.

        Neither the root nor modification times count, so a copy elsewhere has the
        same fingerprint and an edited file another one.
        """
        ids = (unicodedata.normalize("NFC", path) for path in self.paths)
        digests = threaded_map(_digest, (self.root / path for path in self.paths))
        return fingerprint(self.class_names, self.labels, ids, digests)

    def take(
        self,
        rows: Int[np.ndarray, " kept"],
        labels: Int[np.ndarray, " kept"],
        class_names: tuple[str, ...],
        *,
        split: str,
        notes: tuple[Note, ...] = (),
    ) -> "FileSource":
        """Keep some images, under new labels, class names and split."""
        return dataclasses.replace(
            self,
            paths=tuple(self.paths[row] for row in rows),
            labels=as_labels(labels),
            class_names=class_names,
            split=split,
            notes=self.notes + notes,
        )


def from_classes(
    name: str,
    split: str,
    root: pathlib.Path,
    rows: Iterable[tuple[str, str]],
    notes: Sequence[Note] = (),
) -> FileSource:
    """Build a source from (path, class name) pairs.

    Classes come in sorted order, and the images of a class in the order of their
    file names, in whichever folders they lie: never in the order of a file system or
    a table.

    Args:
      name: The data set's name.
      split: The split's name.
      root: The folder that paths are relative to.
      rows: One pair an image.
      notes: What was noticed so far.

    Returns:
      The source.
    """
    paths: dict[str, list[str]] = collections.defaultdict(list)
    for path, class_name in rows:
        paths[class_name].append(path)
    names = sorted(paths, key=sort_key)
    ordered = [(label, p) for label, n in enumerate(names) for p in _sorted(paths[n])]
    return FileSource(
        name=name,
        split=split,
        root=root,
        paths=tuple(path for _, path in ordered),
        labels=as_labels([label for label, _ in ordered]),
        class_names=tuple(printable(n) for n in names),
        notes=tuple(notes),
    )


def sort_key(name: str) -> tuple[str, str]:
    """Order names by code point, however the file system composes accents."""
    return unicodedata.normalize("NFC", name), name


def fingerprint(
    class_names: tuple[str, ...],
    labels: Int[np.ndarray, " len"],
    ids: Iterable[str],
    digests: Iterable[bytes],
) -> str:
    """Hash class names, and the id, label and content digest of each image."""
    total = hashlib.blake2b(f"rdc_jax source {DECODE_VERSION}".encode(), digest_size=16)
    for class_name in class_names:
        total.update(_framed(class_name))
    for item, label, digest in zip(ids, labels, digests, strict=True):
        total.update(_framed(item) + int(label).to_bytes(4, "little") + digest)
    return total.hexdigest()


def content_digest(data: bytes | memoryview) -> bytes:
    """Digest of an encoded image: its length and its bytes."""
    digest = hashlib.blake2b(data, digest_size=16).digest()
    return len(data).to_bytes(8, "little") + digest


def _digest(path: pathlib.Path) -> bytes:
    try:
        stat = os.stat(path)
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        if key not in _digests:
            _digests[key] = content_digest(path.read_bytes())
        return _digests[key]
    except OSError as error:
        raise UserError(
            f"{printable(str(path))}: {error.strerror}; it was there when the data set "
            "was opened, so check the disk and start again"
        ) from error


def _framed(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(4, "little") + data


def _sorted(paths: list[str]) -> list[str]:
    return sorted(paths, key=lambda p: (sort_key(os.path.basename(p)), sort_key(p)))
