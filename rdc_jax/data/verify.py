"""Check a data set before a run: counts, damage, duplicates, small classes."""

import collections
import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from rdc_jax.data.datasets import Dataset, likely
from rdc_jax.data.parallel import threaded_map
from rdc_jax.data.source import Source, UnreadableImage


class Finding(NamedTuple):
    """One fault of a data set.

    Attributes:
      kind: ``unreadable``, ``truncated``, ``duplicate``, ``small class``, ``count``,
        ``other data set``, or the kind of a source's note.
      text: One line for people, with the file or class.
    """

    kind: str
    text: str


@dataclasses.dataclass(frozen=True)
class ClassRow:
    """Counts of one class.

    Attributes:
      name: The class.
      images: All its images.
      readable: Those that can be decoded.
      duplicates: Those whose pixels came before, in any class.
      expected: Images in the complete data set, where that is known.
      miscounted: Whether ``images`` differs from it.
    """

    name: str
    images: int
    readable: int
    duplicates: int
    expected: int | None
    miscounted: bool


@dataclasses.dataclass(frozen=True)
class Report:
    """What was found in one part of a data set.

    Attributes:
      name: The data set's name.
      split: The split, or ``all``.
      classes: One row a class.
      findings: Faults; none means that all is well.
      remarks: Things to know that are no faults.
      smallest: Height and width of the image with the fewest pixels.
      largest: Height and width of the image with the most pixels.
    """

    name: str
    split: str
    classes: tuple[ClassRow, ...]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]
    smallest: tuple[int, int]
    largest: tuple[int, int]

    @property
    def images(self) -> int:
        """Number of images, readable or not."""
        return sum(row.images for row in self.classes)

    def as_json(self) -> dict[str, Any]:
        """A plain structure with every field, for ``json.dumps``."""
        fields = dataclasses.asdict(self)
        fields["findings"] = [finding._asdict() for finding in self.findings]
        return {**fields, "images": self.images}


class _Look(NamedTuple):
    """What decoding one image showed: a digest and a size, or why it failed."""

    digest: bytes
    size: tuple[int, int]
    fault: str


def verify(
    source: Source,
    *,
    dataset: Dataset | None = None,
    way: int = 5,
    shot: int = 5,
    query: int = 15,
    tick: Callable[[], Any] = lambda: None,
) -> Report:
    """Decode every image once and report all that is wrong.

    Nothing stops the check half-way: a broken image is a finding. Memory holds one
    short digest an image, never pixels of more than a few.

    Args:
      source: The images to check.
      dataset: The known data set that this should be.
      way: Classes in an episode.
      shot: Support images a class.
      query: Query images a class.
      tick: Called after each image, to show progress.

    Returns:
      The report.
    """
    looks = threaded_map(lambda i: _look(source, i), range(len(source)))
    faults, readable, duplicates, sizes = _scan(source, looks, tick)
    rows = _rows(source, dataset, readable, duplicates)
    notes = getattr(source, "notes", ())
    findings = [Finding(note.kind, note.text) for note in notes if note.problem]
    findings += [*faults, *_small(rows, way, shot + query), *_other(source, dataset)]
    findings += _miscounted(rows, findings)
    return Report(
        name=source.name,
        split=source.split,
        classes=rows,
        findings=tuple(findings),
        remarks=tuple(_remarks(source, dataset)),
        smallest=min(sizes, key=np.prod, default=(0, 0)),
        largest=max(sizes, key=np.prod, default=(0, 0)),
    )


def _look(source: Source, i: int) -> _Look:
    try:
        image = source.image(i)
    except UnreadableImage as error:
        return _Look(b"", (0, 0), error.reason)
    digest = hashlib.blake2b(str(image.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(image).data)
    return _Look(digest.digest(), (image.shape[0], image.shape[1]), "")


def _scan(
    source: Source, looks: Iterator[_Look], tick: Callable[[], Any]
) -> tuple[list[Finding], np.ndarray, np.ndarray, set[tuple[int, int]]]:
    """Walk over all images: faults, and readable and duplicate ones a class."""
    findings = []
    readable = np.zeros(len(source.class_names), int)
    duplicates = np.zeros_like(readable)
    first: dict[bytes, int] = {}
    sizes = set()
    for i, look in enumerate(looks):
        tick()
        label = source.labels[i]
        if look.fault:
            kind = "truncated" if look.fault == "truncated" else "unreadable"
            findings.append(Finding(kind, f"{source.locate(i)}: {look.fault}"))
            continue
        readable[label] += 1
        sizes.add(look.size)
        twin = first.setdefault(look.digest, i)
        if twin != i:
            duplicates[label] += 1
            other = "" if source.labels[twin] == label else ", in another class"
            text = f"{source.locate(i)}: same pixels as {source.locate(twin)}{other}"
            findings.append(Finding("duplicate", text))
    return findings, readable, duplicates, sizes


def _rows(
    source: Source,
    dataset: Dataset | None,
    readable_c: Int[np.ndarray, " c"],
    duplicates_c: Int[np.ndarray, " c"],
) -> tuple[ClassRow, ...]:
    rows = []
    images_c = np.bincount(source.labels, minlength=len(source.class_names))
    for c, name in enumerate(source.class_names):
        images = int(images_c[c])
        row = ClassRow(
            name=name,
            images=images,
            readable=int(readable_c[c]),
            duplicates=int(duplicates_c[c]),
            expected=dataset.expected(name) if dataset else None,
            miscounted=dataset is not None and dataset.differs(name, images),
        )
        rows.append(row)
    return tuple(rows)


def _small(rows: tuple[ClassRow, ...], way: int, needed: int) -> Iterator[Finding]:
    small = [row for row in rows if row.readable < needed]
    for row in small:
        text = f"{row.name}: {row.readable} readable images, an episode needs {needed}"
        yield Finding("small class", text)
    if len(rows) - len(small) < way:
        text = (
            f"{len(rows) - len(small)} classes are large enough, an episode needs {way}"
        )
        yield Finding("small class", text)


def _miscounted(
    rows: tuple[ClassRow, ...], findings: list[Finding]
) -> Iterator[Finding]:
    """One line for all classes that differ, unless the total was reported already."""
    off = [row for row in rows if row.miscounted]
    if off and not any(finding.kind == "count" for finding in findings):
        text = f"{len(off)} of {len(rows)} classes have another number of images than "
        yield Finding("count", f"{text}expected, first {off[0].name}")


def _other(source: Source, dataset: Dataset | None) -> Iterator[Finding]:
    guess = likely(source.class_names)
    if dataset and guess and guess != dataset and dataset.fit(source.class_names) < 0.5:
        text = f"the class names look like {guess.name}'s, not {dataset.name}'s"
        yield Finding("other data set", text)


def _remarks(source: Source, dataset: Dataset | None) -> Iterator[str]:
    for note in getattr(source, "notes", ()):
        if not note.problem:
            yield f"{note.kind}: {note.text}"
    guess = likely(source.class_names)
    if dataset is None and guess is not None:
        yield (
            f"the class names look like {guess.name}'s: verify it by that name to "
            "check its counts"
        )


def summary(findings: Iterable[Finding]) -> dict[str, int]:
    """Number of findings of each kind, in the order of appearance."""
    return dict(collections.Counter(finding.kind for finding in findings))
