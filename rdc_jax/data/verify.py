"""Check a data set before a run: counts, damage, duplicates, small classes."""

import collections
import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet, Note, shortened
from rdc_jax.data.parallel import threaded_map
from rdc_jax.runtime.text import table

_LINES = 20  # findings of one kind, unless all are asked for
_ROWS = 60  # classes, likewise


@dataclasses.dataclass
class ClassRow:
    """Counts of one class.

    Attributes:
      name: The class.
      images: All its images.
      readable: Those that can be decoded.
      duplicates: Those whose pixels came before, in any class.
    """

    name: str
    images: int
    readable: int = 0
    duplicates: int = 0

    @property
    def unreadable(self) -> int:
        """Those that cannot be decoded."""
        return self.images - self.readable


@dataclasses.dataclass(frozen=True)
class Report:
    """What was found in one part of a data set.

    Attributes:
      name: The data set's name.
      split: The split, or ``all``.
      classes: One row a class.
      findings: Faults, of kind ``unreadable``, ``truncated``, ``duplicate``, ``small
        class``, ``count`` or as the images were listed; none means that all is well.
      remarks: Things to know that are no faults.
      smallest: Height and width of the image with the fewest pixels.
      largest: Height and width of the image with the most pixels.
    """

    name: str
    split: str
    classes: tuple[ClassRow, ...]
    findings: tuple[Note, ...]
    remarks: tuple[Note, ...]
    smallest: tuple[int, int]
    largest: tuple[int, int]

    @property
    def images(self) -> int:
        """Number of images, readable or not."""
        return sum(row.images for row in self.classes)

    def as_json(self) -> dict[str, Any]:
        """A plain structure with every field, for ``json.dumps``."""
        return {
            **dataclasses.asdict(self),
            "findings": [{"kind": n.kind, "text": n.text} for n in self.findings],
            "remarks": [f"{note.kind}: {note.text}" for note in self.remarks],
            "images": self.images,
        }


def verify(
    images: ImageSet,
    *,
    way: int = 5,
    shot: int = 5,
    query: int = 15,
    tick: Callable[[], Any] = lambda: None,
) -> Report:
    """Decode every image once and report all that is wrong.

    Nothing stops the check half-way: a broken image is a finding, and so are classes
    too small for tasks of this way, shot and query. Memory holds one short digest an
    image, never pixels of more than a few. ``tick`` is called after each image.
    """
    counts = np.bincount(images.labels, minlength=len(images.class_names)).tolist()
    rows = [ClassRow(*row) for row in zip(images.class_names, counts, strict=True)]
    findings = [note for note in images.notes if note.problem]
    first: dict[bytes, int] = {}
    sizes = set()
    looks = threaded_map(lambda i: _look(images, i), range(len(images)))
    for i, (size, digest, fault) in enumerate(looks):
        tick()
        row = rows[images.labels[i]]
        if fault:
            kind = "truncated" if fault == "truncated" else "unreadable"
            findings.append(Note(kind, f"{images.locate(i)}: {fault}"))
            continue
        row.readable += 1
        sizes.add(size)
        twin = first.setdefault(digest, i)
        if twin != i:
            row.duplicates += 1
            same_class = images.labels[twin] == images.labels[i]
            other = "" if same_class else ", in another class"
            text = f"{images.locate(i)}: same pixels as {images.locate(twin)}{other}"
            findings.append(Note("duplicate", text))
    needed = shot + query
    small = [row for row in rows if row.readable < needed]
    for row in small:
        text = f"{row.name}: {row.readable} readable images, a task needs {needed}"
        findings.append(Note("small class", text))
    if (large := len(rows) - len(small)) < way:
        text = f"{large} classes are large enough, a task needs {way}"
        findings.append(Note("small class", text))
    return Report(
        name=images.name,
        split=images.split,
        classes=tuple(rows),
        findings=tuple(findings),
        remarks=tuple(note for note in images.notes if not note.problem),
        smallest=min(sizes, key=np.prod, default=(0, 0)),
        largest=max(sizes, key=np.prod, default=(0, 0)),
    )


def render(report: Report, *, everything: bool = False) -> str:
    """Write a report as text: the classes, the findings, a verdict.

    Long lists are cut, unless ``everything`` is wanted.
    """
    part = f"{report.name}, {report.split}"
    size = " to ".join(f"{h}x{w}" for h, w in (report.smallest, report.largest))
    rows = report.classes
    lines = [f"{part}: {len(rows)} classes, {report.images:,} images of {size} px"]
    if len(rows) > _ROWS and not everything:
        faulty = (row for row in rows if row.unreadable or row.duplicates)
        rows = tuple(faulty)[:_ROWS]
    if rows:
        cells = [
            [row.name, str(row.images), str(row.unreadable), str(row.duplicates)]
            for row in rows
        ]
        heading = ["class", "images", "unreadable", "duplicates"]
        lines += ["", table([heading, *cells], right=frozenset({1, 2, 3}))]
    if hidden := len(report.classes) - len(rows):
        lines.append(f"({hidden} more classes; --all shows them)")
    lines += ["", *(f"note: {note.kind}: {note.text}" for note in report.remarks)]
    shown = list(report.findings)
    if not everything:
        shown = shortened(shown, _LINES, hint=" (--all shows them)")
    lines += [f"{finding.kind}: {finding.text}" for finding in shown]
    times = collections.Counter(finding.kind for finding in report.findings)
    counts = ", ".join(f"{count} {kind}" for kind, count in times.items())
    return "\n".join([*lines, f"{part}: {counts or 'no findings'}"])


def _look(images: ImageSet, i: int) -> tuple[tuple[int, int], bytes, str]:
    """Size and digest of one image's pixels, and why it cannot be decoded."""
    try:
        pixels = images.image(i)
    except UnreadableImage as error:
        return (0, 0), b"", error.reason
    digest = hashlib.blake2b(str(pixels.shape).encode(), digest_size=16)
    digest.update(pixels.data)
    return (pixels.shape[0], pixels.shape[1]), digest.digest(), ""
