"""The paper's own numbers, beside those of a run that can be compared with them."""

import functools
import importlib.resources
import json
from collections.abc import Collection, Sequence
from typing import Any

Row = dict[str, Any]

_WAY = 5  # Of all tasks in the paper.
_AVERAGE = "average"  # In the place of a data set, among the rows of other systems.
# Methods with one published recipe, shown beside a run's with any parameters.
_REPORTED = ("finetune",)


@functools.cache
def content() -> dict[str, Any]:
    """Give all published numbers: ``rows`` like those of ``results.json``."""
    file = importlib.resources.files("rdc_jax.evaluation") / "published.json"
    return json.loads(file.read_text(encoding="utf-8"))


@functools.cache
def datasets() -> frozenset[str]:
    """Names of the paper's data sets."""
    return frozenset(row["dataset"] for row in content()["rows"])


def name_of(method: str) -> str:
    """Give the name that the published numbers have a method under.

    >>> name_of("finetune(steps=100)"), name_of("rdc_ft(alpha=0.3)")
    ('finetune', 'rdc_ft(alpha=0.3)')
    """
    base = method.partition("(")[0]
    return base if base in _REPORTED else method


def title_of(method: str, title: str) -> str:
    """Give the title of a published line, without parameters that are the run's own.

    >>> title_of("finetune(steps=100)", "Fine-tuning (steps=100)")
    'Fine-tuning'
    >>> title_of("rdc_ft(alpha=0.3)", "RDC-FT (alpha=0.3)")
    'RDC-FT (alpha=0.3)'
    """
    return title if name_of(method) == method else title.partition(" (")[0]


def collect(rows: Sequence[Row], *, way: int, systems: bool) -> dict[str, Any]:
    """Make the part ``published`` of ``results.json``.

    Args:
      rows: The run's own rows.
      way: Classes of its tasks; the paper has 5-way tasks only.
      systems: Whether to show other authors' systems too.

    Returns:
      ``label`` names the paper, ``datasets`` is the number of its data sets, ``notes``
      say what the lines were measured on. Each of ``lines`` has a ``shot``, a
      ``method`` (None for another system), a ``title``, ``rows`` by data set, the
      ``average`` over the paper's data sets (None if it is not printed), and whether
      these data sets are the ``same`` as the run's.
    """
    names = dict.fromkeys(row["dataset"] for row in rows)
    comparable = way == _WAY and not datasets().isdisjoint(names)
    titles = {row["method"]: row["title"] for row in rows}
    lines: list[dict[str, Any]] = []
    for shot in dict.fromkeys(row["shot"] for row in rows) if comparable else ():
        lines += [_line(shot, method, titles[method], names) for method in titles]
        lines += _systems(shot, names) if systems else []
    lines = [line for line in lines if line["rows"] or line["average"] is not None]
    kinds = {name_of(line["method"] or "systems") for line in lines}
    notes = [text for kind, text in content()["notes"].items() if kind in kinds]
    return {
        "label": content()["label"],
        "datasets": len(datasets()),
        "notes": [content()["note"], *notes] if lines else [],
        "lines": lines,
    }


def _line(shot: int, method: str, title: str, names: Collection[str]) -> dict[str, Any]:
    """What the paper has of a method; some of its tables have averages alone."""
    known = (shot, name_of(method))
    rows, averages = (
        [row for row in content()[part] if (row["shot"], row["method"]) == known]
        for part in ("rows", "averages")
    )
    return {
        "shot": shot,
        "method": method,
        "title": title_of(method, title),
        "average": averages[0]["accuracy"] if averages else None,
        **_cells({row["dataset"]: row for row in rows}, names),
    }


def _systems(shot: int, names: Collection[str]) -> list[dict[str, Any]]:
    """The lines of other authors' systems."""
    found: dict[str, dict[str, Row]] = {}
    for row in content()["systems"]:
        if row["shot"] == shot:
            found.setdefault(row["title"], {})[row["dataset"]] = row
    return [
        {
            "shot": shot,
            "method": None,
            "title": title,
            "average": rows[_AVERAGE]["accuracy"],
            **_cells(rows, names),
        }
        for title, rows in found.items()
    ]


def _cells(rows: dict[str, Row], names: Collection[str]) -> dict[str, Any]:
    cells = {
        name: {key: rows[name][key] for key in ("accuracy", "ci95")}
        for name in names
        if name in rows
    }
    return {"rows": cells, "same": datasets() == set(names)}
