"""Reports and the list of data sets as text for a terminal."""

import os
import sys
import textwrap
from collections.abc import Iterator

from rdc_jax.data.datasets import DATASETS
from rdc_jax.data.opening import names_under
from rdc_jax.data.synthetic import DOMAINS
from rdc_jax.data.verify import ClassRow, Report, summary
from rdc_jax.runtime.text import paragraph, table, two_columns

_LINES = 20  # findings of one kind, unless all are asked for
_ROWS = 60  # classes, likewise
_TITLE = 38  # letters of a data set's title in one line of the list
_OTHERS = (
    "Everything else is given by its path: a folder of class folders, a .json file "
    "list; or as tfds:NAME[/CONFIG][:SPLIT], a data set that TFDS has prepared. "
    "docs/datasets.md says where to get each, and its layout."
)


def render(report: Report, *, everything: bool = False) -> str:
    """Write a report as text.

    Args:
      report: From ``verify``.
      everything: Show every class and finding, however many there are.

    Returns:
      Several lines: the classes, the findings, a verdict.
    """
    return "\n".join(_lines(report, everything))


def _lines(report: Report, everything: bool) -> Iterator[str]:
    size = " to ".join(f"{h}x{w}" for h, w in (report.smallest, report.largest))
    yield (
        f"{report.name}, {report.split}: {len(report.classes)} classes, "
        f"{report.images:,} images of {size} px"
    )
    yield ""
    yield from _classes(report, everything)
    for remark in report.remarks:
        yield f"note: {remark}"
    shown: dict[str, int] = {}
    for kind, text in report.findings:
        shown[kind] = shown.get(kind, 0) + 1
        if everything or shown[kind] <= _LINES:
            yield f"{kind}: {text}"
    for kind, times in shown.items():
        if times > _LINES and not everything:
            yield f"{kind}: {times - _LINES} more (--all shows them)"
    counts = ", ".join(f"{n} {kind}" for kind, n in summary(report.findings).items())
    yield f"{report.name}, {report.split}: {counts or 'no findings'}"


def _classes(report: Report, everything: bool) -> Iterator[str]:
    rows = list(report.classes)
    hidden = 0
    if len(rows) > _ROWS and not everything:
        rows = [row for row in rows if _flags(row)][:_ROWS]
        hidden = len(report.classes) - len(rows)
    if rows:
        heading = ["class", "images", "expected", "unreadable", "duplicates", ""]
        cells = [_cells(row) for row in rows]
        yield table([heading, *cells], right=frozenset({1, 2, 3, 4}))
    if hidden:
        yield f"({hidden} more classes; --all shows them)"
    yield ""


def _cells(row: ClassRow) -> list[str]:
    numbers = (row.images, row.expected, row.images - row.readable, row.duplicates)
    cells = ["-" if number is None else f"{number:,}" for number in numbers]
    return [row.name, *cells, _flags(row)]


def _flags(row: ClassRow) -> str:
    marks = {
        "count": row.miscounted,
        "unreadable": row.readable < row.images,
        "duplicates": row.duplicates > 0,
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


def catalogue(data_dir: str | os.PathLike[str] | None = None) -> str:
    """What can be asked for by name: the paper's data sets, folders, built-in ones.

    Args:
      data_dir: Where names are looked for; the current folder when not given.

    Returns:
      Several lines of at most 80 letters, as far as names allow.

    Raises:
      UserError: ``data_dir`` is not a folder.
    """
    here = names_under(data_dir)
    others = [name for name in here if name.lower() not in DATASETS]
    built_in = [(f"synthetic:{name}", _about(name)) for name in DOMAINS]
    folders = f"other folders in {data_dir or '.'}: {', '.join(others) or 'none'}"
    return "\n".join(
        [
            _known(frozenset(map(str.lower, here))),
            "",
            paragraph(folders, indent=0),
            "",
            "built in, without any files:",
            two_columns(built_in),
            "",
            paragraph(_OTHERS, indent=0),
        ]
    )


def _known(here: frozenset[str]) -> str:
    heading = ["name", "here", "classes", "test", "TFDS", "what it is"]
    rows = [heading]
    for dataset in DATASETS.values():
        first, *more = textwrap.wrap(dataset.title, _TITLE)
        counts = [str(dataset.classes), str(dataset.size("test"))]
        marks = ["yes" if it else "no" for it in (dataset.name in here, dataset.tfds)]
        rows.append([dataset.name, marks[0], *counts, marks[1], first])
        rows += [["", "", "", "", "", line] for line in more]
    return table(rows, right=frozenset({2, 3}))


def _about(domain: str) -> str:
    """The first sentence of the file that paints a domain."""
    module = sys.modules[DOMAINS[domain].paint.__module__]
    count = len(DOMAINS[domain].class_names)
    return f"{(module.__doc__ or '').splitlines()[0].rstrip('.')}; {count} classes"
