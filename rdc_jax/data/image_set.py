"""Labelled images, read one at a time: the same for files, TFDS and computed ones."""

import collections
import dataclasses
import hashlib
import os
import pathlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8
from PIL import Image

from rdc_jax.data.decode import DECODE_VERSION, read_picture
from rdc_jax.data.names import printable, sort_key
from rdc_jax.data.parallel import threaded_map
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

# (path, size, mtime_ns) -> digest; a file is read once a process while unchanged.
_digests: dict[tuple[str, int, int], bytes] = {}


class Note(NamedTuple):
    """Something that was noticed while images were listed, without failing.

    Attributes:
      kind: A word or two: ``skipped``, ``empty class``, ``ignored``, ...
      text: One line for people.
      problem: Whether it is a fault in the data, rather than information.
    """

    kind: str
    text: str
    problem: bool = True


def shortened(notes: Iterable[Note], most: int, *, hint: str = "") -> list[Note]:
    """Keep the first notes of each kind, and count the others of it in one."""
    times: collections.Counter[str] = collections.Counter()
    shown = []
    for note in notes:
        times[note.kind] += 1
        if times[note.kind] <= most:
            shown.append(note)
    more = [(kind, count - most) for kind, count in times.items() if count > most]
    return shown + [Note(kind, f"{count} more{hint}") for kind, count in more]


@dataclasses.dataclass(frozen=True, eq=False)
class ImageSet:
    """Labelled RGB images of one split of a data set.

    Attributes:
      name: The data set's name; tasks and results carry it.
      split: ``train``, ``val``, ``test``, or ``all`` where there are no splits.
      ids: One name an image; of a file, its path below ``root``.
      labels: The class of each image, an index into ``class_names``; kept as int32.
      class_names: One name a class.
      read: Decodes image ``i`` to RGB; ``UnreadableImage`` where that fails.
      digest: Digest of image ``i`` as it is stored.
      identity: What all images are a function of, where no ``digest`` is given: a
        cache is used again where it is the same.
      root: What comes before an id in messages: a folder with its slash, for files.
      notes: What was noticed while the images were listed.

    Raises:
      ValueError: A label is missing or outside of the classes, or nothing identifies
        the images.
    """

    name: str
    split: str
    ids: Sequence[str]
    labels: Int[np.ndarray, " n"]
    class_names: tuple[str, ...]
    read: Callable[[int], Image.Image]
    digest: Callable[[int], bytes] | None = None
    identity: str = ""
    root: str = ""
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.int32)
        labels.setflags(write=False)  # Several sets may share the array.
        object.__setattr__(self, "labels", labels)
        if len(labels) != len(self.ids):
            raise ValueError(
                f"{self.name}: {len(self.ids)} ids and {len(labels)} labels; give each "
                "image one of both"
            )
        if not np.isin(labels, np.arange(len(self.class_names))).all():
            raise ValueError(
                f"{self.name}: a label is outside 0 ... {len(self.class_names) - 1}"
            )
        if self.digest is None and not self.identity:
            raise ValueError(
                f"{self.name}: give a digest or an identity, by which a cache knows "
                "these images from others"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def image(self, i: int) -> UInt8[np.ndarray, "h w 3"]:
        """Image ``i`` as an array."""
        if not 0 <= i < len(self):
            raise IndexError(f"image {i} of {len(self)}")
        return np.array(self.read(i))

    def images(
        self, indices: Iterable[int] | Int[np.ndarray, " b"]
    ) -> UInt8[np.ndarray, "b h w 3"]:
        """Several images, where all are of one size."""
        return np.stack([self.image(int(i)) for i in indices])

    def locate(self, i: int) -> str:
        """Where image ``i`` comes from, for messages."""
        return printable(self.root + self.ids[i])

    @property
    def paths(self) -> tuple[pathlib.Path, ...]:
        """The files, where the images are files."""
        return tuple(pathlib.Path(self.root + path) for path in self.ids)

    def fingerprint(self) -> str:
        """Identity of content: class names, and the id, label and bytes of each image.

        Neither the root nor modification times count, so a copy elsewhere has the
        same fingerprint and an edited file another one.
        """
        if self.digest is None:
            return self.identity
        header = f"rdc_jax source {DECODE_VERSION}".encode()
        total = hashlib.blake2b(header, digest_size=16)
        for class_name in self.class_names:
            total.update(_framed(class_name))
        digests = threaded_map(self.digest, range(len(self)))
        for item, label, digest in zip(self.ids, self.labels, digests, strict=True):
            item = unicodedata.normalize("NFC", item)
            total.update(_framed(item) + int(label).to_bytes(4, "little") + digest)
        return total.hexdigest()

    def take(
        self,
        classes: Sequence[int],
        *,
        split: str,
        first: int | None = None,
        notes: tuple[Note, ...] = (),
    ) -> "ImageSet":
        """Keep some classes; labels become indices into these.

        Args:
          classes: Those to keep, in their new order.
          split: Name of what is kept.
          first: How many images of each class to keep; all by default.
          notes: Added to the ones there are.
        """
        members = [np.flatnonzero(self.labels == label)[:first] for label in classes]
        rows = np.concatenate(members).tolist()
        digest = self.digest
        return dataclasses.replace(
            self,
            split=split,
            ids=tuple(self.ids[row] for row in rows),
            labels=np.repeat(np.arange(len(members)), [len(m) for m in members]),
            class_names=tuple(self.class_names[label] for label in classes),
            read=lambda i: self.read(rows[i]),
            digest=digest and (lambda i: digest(rows[i])),
            identity=self.identity and checksums.of_json([self.identity, rows]),
            notes=self.notes + notes,
        )


def from_files(
    name: str,
    split: str,
    root: str | os.PathLike[str],
    paths: Sequence[str],
    labels: Sequence[int] | Int[np.ndarray, " n"],
    class_names: Sequence[str],
    notes: Sequence[Note] = (),
) -> ImageSet:
    """Make a set of image files; ``paths`` are relative to ``root``."""
    base = os.path.join(root, "")
    return ImageSet(
        name=name,
        split=split,
        ids=tuple(paths),
        labels=np.array(labels),
        class_names=tuple(class_names),
        read=lambda i: read_picture(pathlib.Path(base + paths[i])),
        digest=lambda i: _file_digest(base + paths[i]),
        root=base,
        notes=tuple(notes),
    )


def from_classes(
    name: str,
    split: str,
    root: pathlib.Path,
    rows: Iterable[tuple[str, str]],
    notes: Sequence[Note] = (),
) -> ImageSet:
    """Make a set of image files from (path, class name) pairs.

    Classes are sorted, and the images of a class by their file names (folders count
    last), so that the order of a file system or a table does not matter.
    """
    paths: dict[str, list[str]] = collections.defaultdict(list)
    for path, class_name in rows:
        paths[class_name].append(path)
    names = sorted(paths, key=sort_key)
    for group in paths.values():
        group.sort(key=lambda path: (sort_key(os.path.basename(path)), sort_key(path)))
    return from_files(
        name,
        split,
        root,
        [path for class_name in names for path in paths[class_name]],
        [label for label, class_name in enumerate(names) for _ in paths[class_name]],
        [printable(class_name) for class_name in names],
        notes,
    )


def content_digest(data: bytes) -> bytes:
    """Digest of an encoded image: its length and its bytes."""
    digest = hashlib.blake2b(data, digest_size=16).digest()
    return len(data).to_bytes(8, "little") + digest


def _file_digest(path: str) -> bytes:
    try:
        stat = os.stat(path)
        key = (path, stat.st_size, stat.st_mtime_ns)
        if key not in _digests:
            _digests[key] = content_digest(pathlib.Path(path).read_bytes())
        return _digests[key]
    except OSError as error:
        raise UserError(
            f"{printable(path)}: {error.strerror}; it was there when the data set "
            "was opened, so check the disk and start again"
        ) from error


def _framed(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(4, "little") + data
