"""The paper's own numbers, where a run can be held against them."""

import functools
import importlib.resources
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

Row = dict[str, Any]

_WAY = 5  # Of all tasks in the paper.
_AVERAGE = "average"  # In the place of a data set, among the rows of other systems.
# Others' results with a recipe of theirs, to hold against ours with any parameters.
_REPORTED = ("finetune",)


class Line(NamedTuple):
    """What the paper has of one method in one shot.

    Attributes:
      rows: By data set, of those that the run has too.
      average: Over the paper's own data sets; None: not printed.
      same: Whether these are the run's, so that averages are of the same thing.
    """

    rows: dict[str, Row]
    average: float | None
    same: bool


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
    """Give the title of a published line: parameters of ours are not the paper's.

    >>> title_of("finetune(steps=100)", "Fine-tuning (steps=100)")
    'Fine-tuning'
    >>> title_of("rdc_ft(alpha=0.3)", "RDC-FT (alpha=0.3)")
    'RDC-FT (alpha=0.3)'
    """
    return title if name_of(method) == method else title.partition(" (")[0]


def line(
    config: Mapping[str, Any], names: Collection[str], shot: int, method: str
) -> Line | None:
    """Find what the paper has of a method; some of its tables are averages alone.

    Args:
      config: Of the run, whose tasks may be of a kind that the paper has not.
      names: Of the run's data sets.
      shot: Labelled images a class.
      method: Its name.

    Returns:
      The line; None: there is nothing to hold the run against.
    """
    if not _comparable(config, names):
        return None
    known = (shot, name_of(method))
    rows, averages = (
        [r for r in content()[part] if (r["shot"], r["method"]) == known]
        for part in ("rows", "averages")
    )
    if not (rows or averages):
        return None
    average = averages[0]["accuracy"] if averages else None
    return _line({row["dataset"]: row for row in rows}, average, names)


def systems(
    config: Mapping[str, Any], names: Collection[str], shot: int
) -> dict[str, Line]:
    """Find the lines of other authors' systems by title, if the run wants them.

    Args:
      config: Of the run.
      names: Of the run's data sets.
      shot: Labelled images a class.
    """
    if not (config.get("systems") and _comparable(config, names)):
        return {}
    found: dict[str, dict[str, Row]] = {}
    for row in content()["systems"]:
        if row["shot"] == shot:
            found.setdefault(row["title"], {})[row["dataset"]] = row
    return {
        title: _line(rows, rows[_AVERAGE]["accuracy"], names)
        for title, rows in found.items()
    }


def _comparable(config: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether a run has tasks of the paper's kind, and any of its data sets."""
    return config["way"] == _WAY and not datasets().isdisjoint(names)


def _line(
    rows: Mapping[str, Row], average: float | None, names: Collection[str]
) -> Line:
    shown = {name: rows[name] for name in names if name in rows}
    return Line(shown, average, datasets() == set(names))
