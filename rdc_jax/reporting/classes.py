"""Which classes are taken for which: matrices, pairs, the accuracy of each class."""

import html
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rdc_jax.core.statistics import plus_minus
from rdc_jax.reporting import summary
from rdc_jax.reporting.drawing import Drawing
from rdc_jax.reporting.runs import Row, Run
from rdc_jax.reporting.tables import Cell, Line, Table, number
from rdc_jax.runtime.config_values import Shot

_NAMED = 12  # Classes whose names fit beside a matrix.
_SHADES = 10
_WIDTH = 430  # Of a matrix with its labels, in pixels.


class Classes(NamedTuple):
    """What is shown of a data set and shot.

    Attributes:
      title: Data set, shot, and how far its classes differ.
      matrix: Confusions by one method.
      tables: Its confused pairs, and the accuracy of each class by all methods.
    """

    title: str
    matrix: Drawing
    tables: list[Table]


def measures(run: Run, shot: Shot) -> list[Table]:
    """Macro-F1 by data set; where tasks are uneven, balanced accuracy too."""
    titles = {"macro_f1": "Macro-F1"}
    if run.config["dirichlet"]:
        titles["balanced_accuracy"] = "Balanced accuracy"
    return [
        Table(
            f"{title} in percent ± 95% interval, {shot}-shot",
            ["method", *run.datasets],
            [*_lines(run, shot, name)],
            stacked=True,
        )
        for name, title in titles.items()
        if any(name in row for row in run.rows)
    ]


def content(run: Run) -> dict[str, Any]:
    """Make the tables of all data sets, and what is shown of each; empty if nothing."""
    tables = [table for shot in run.shots for table in measures(run, shot)]
    shown = _show(run)
    return {"tables": tables, "shown": shown} if tables or shown else {}


def _show(run: Run) -> list[Classes]:
    shown = (summary.main_methods(run) or [*run.titles])[0]
    found = []
    for shot in run.shots:
        for dataset in run.datasets:
            rows = {
                row["method"]: row
                for row in run.part("classes", shot)
                if row["dataset"] == dataset
            }
            if shown in rows:
                names = run.results["class_names"][dataset]
                found.append(_classes(names, rows, shown))
    return found


def _lines(run: Run, shot: Shot, name: str) -> Iterator[Line]:
    for method, title in run.titles.items():
        found = run.accuracies(shot, method)
        rows = [found.get(dataset, {}) for dataset in run.datasets]
        yield Line(title, [_mean(row, name) for row in rows])


def _mean(row: Row, name: str) -> Cell:
    ci95 = row.get(f"{name}_ci95")
    return number(row.get(name), small=plus_minus(ci95).lstrip())


def _classes(names: Sequence[str], rows: dict[str, Row], shown: str) -> Classes:
    row = rows[shown]
    place = f"{row['dataset']}, {row['shot']}-shot"
    asked = [c for c, share in enumerate(row["class_accuracy"]) if share is not None]
    shares = {row["class_accuracy"][c]: names[c] for c in reversed(asked)}
    worst, best = min(shares), max(shares)
    title = (
        f"{place}: {row['title']} names {best:.0f}% of {shares[best]} rightly, "
        f"{worst:.0f}% of {shares[worst]}"
    )
    pairs = Table(
        f"Classes that {row['title']} confuses most, {place}",
        ["class", "taken for", "share, %", "queries"],
        [
            Line(
                pair["class"],
                [
                    Cell(pair["answer"]),
                    number(pair["share"], ".1f"),
                    number(pair["queries"], ","),
                ],
            )
            for pair in row["confused"]
        ],
    )
    accuracies = Table(
        f"Accuracy of each class in percent, {place}",
        ["class", *(one["title"] for one in rows.values())],
        [
            Line(
                names[c],
                [number(one["class_accuracy"][c], ".1f") for one in rows.values()],
                note=str(c + 1) if len(asked) > _NAMED else "",
            )
            for c in asked
        ],
    )
    kept = [table for table in (pairs, accuracies) if table.lines]
    return Classes(title, _matrix(row, [names[c] for c in asked], asked), kept)


def _matrix(row: Row, names: Sequence[str], asked: Sequence[int]) -> Drawing:
    """Shares of each class's queries by their answers, a row a true class."""
    confusion_kk = np.array(row["confusion"])[np.ix_(asked, asked)]
    share_kk = confusion_kk / np.maximum(confusion_kk.sum(axis=1, keepdims=True), 1)
    right = ", ".join(
        f"{name} {100 * share:.0f}%"
        for name, share in zip(names, np.diagonal(share_kk), strict=True)
    )
    note = "A row is a class, a column an answer; a stronger colour is more."
    labels = [name if len(name) <= 17 else f"{name[:16]}…" for name in names]
    if len(names) > _NAMED:
        note += " Numbers are those of the table of classes."
        labels = [f"{c + 1}" if (c + 1) % 5 == 0 else "" for c in asked]
    svg = _svg(share_kk, labels, f"Right answers: {right}.")
    return Drawing(f"Answers of {row['title']}", svg, note)


def _svg(share_kk: Float[np.ndarray, "k k"], labels: Sequence[str], told: str) -> str:
    """Draw the matrix, a path a shade: small, and in the colours of the page."""
    left = 10 + 7 * max(map(len, labels))
    side = _WIDTH - left
    cell = side / len(labels)
    level_kk = np.ceil(_SHADES * share_kk).astype(int)
    parts = [
        f'<path d="{_squares(level_kk == level, left, cell)}" '
        f'fill="var(--series-1)" fill-opacity="{level / _SHADES:g}"/>'
        for level in range(1, _SHADES + 1)
        if (level_kk == level).any()
    ]
    parts.append(
        f'<rect x="{left}" width="{side}" height="{side}" fill="none" '
        'stroke="var(--muted)"/>'
    )
    parts += [
        f'<text x="{left - 5}" y="{(i + 0.5) * cell:.1f}" text-anchor="end" '
        'dominant-baseline="central" font-size="11" fill="var(--ink)">'
        f"{html.escape(label)}</text>"
        for i, label in enumerate(labels)
        if label
    ]
    return (
        f'<svg viewBox="0 -1 {_WIDTH + 1} {side + 2}" role="img" '
        f'style="max-width: {_WIDTH}px" aria-label="{html.escape(told)}">'
        f"{''.join(parts)}</svg>"
    )


def _squares(chosen_kk: Bool[np.ndarray, "k k"], left: int, cell: float) -> str:
    places = zip(*np.nonzero(chosen_kk), strict=True)
    square = f"h{cell:.2f}v{cell:.2f}h-{cell:.2f}z"
    return "".join(f"M{left + j * cell:.2f} {i * cell:.2f}{square}" for i, j in places)
