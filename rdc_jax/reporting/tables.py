"""The tables: cells with a text, and a number to sort by."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rdc_jax.core.statistics import plus_minus
from rdc_jax.reporting.runs import Row, Run, signed, verdict
from rdc_jax.runtime.config_values import Shot

# Nobody has to tell help from harm by colour.
SIGNS = {"helps": "▲", "unclear": "●", "hurts": "▼"}


class Cell(NamedTuple):
    """One cell.

    Attributes:
      text: What is shown; empty: there is no such number.
      value: What rows are sorted by, of a number.
      small: Beside or below it, as the interval of a mean.
      style: Names of its look.
    """

    text: str = ""
    value: float | None = None
    small: str = ""
    style: str = ""


class Line(NamedTuple):
    """One row of a table: its head, a note in small to it, the cells.

    Attributes:
      published: Whether it is the paper's, and looks different.
    """

    head: str
    cells: list[Cell]
    note: str = ""
    published: bool = False


class Table(NamedTuple):
    """A table.

    Attributes:
      caption: Above it.
      columns: Their titles; the first is that of the rows' heads.
      lines: Its rows.
      stacked: Whether intervals stand below their means, for many columns.
    """

    caption: str
    columns: list[str]
    lines: list[Line]
    stacked: bool = False


def accuracies(run: Run, shot: Shot) -> Table:
    """One line a method, each followed by the published one."""
    lines = []
    for method, title in run.titles.items():
        if rows := run.accuracies(shot, method):
            average = run.average(shot, method) or {}
            cells = _accuracies(rows, run.datasets)
            cells.append(number(average.get("accuracy")))
            if run.baseline:
                cells.append(_average_gain(average))
            note = method if method.lower() != title.lower() else ""
            lines.append(Line(title, cells, note))
        lines += [_published(run, line) for line in run.paper(shot, method)]
    lines += [_published(run, line) for line in run.paper(shot, None)]
    _mark_best([line for line in lines if not line.published])
    columns = ["method", *run.datasets, "average"]
    if run.baseline:
        columns.append("gain")
    caption = f"Accuracy in percent ± 95% interval, {shot}-shot"
    return Table(caption, columns, lines, stacked=True)


def _published(run: Run, line: Row) -> Line:
    average = number(line["average"])
    if average.text and not line["same"]:
        average = average._replace(small=f"its own {run.published['datasets']}")
    cells = [*_accuracies(line["rows"], run.datasets), average]
    return Line(line["title"], cells + [Cell()] * bool(run.baseline), published=True)


def _mark_best(lines: list[Line]) -> None:
    """Let the largest number of each column stand out."""
    for place in range(len(lines[0].cells) if lines else 0):
        values = [line.cells[place].value for line in lines]
        best = max((value for value in values if value is not None), default=None)
        for line in lines:
            cell = line.cells[place]
            if best is not None and cell.value == best:
                line.cells[place] = cell._replace(style=f"best {cell.style}")


def gains(run: Run, shot: Shot) -> Table:
    """Gains on the same tasks, one line for each method and data set."""
    lines = []
    for rows in reversed(run.compared(shot).values()):  # The fullest method first.
        for row in rows:
            drawn = row["episodes"] - row["wins"] - row["losses"]
            counts = (row["wins"], drawn, row["losses"])
            gain = _gain(row["gain"], row["gain_ci95"])
            cells = [number(count, ",") for count in counts]
            lines.append(Line(row["dataset"], [Cell(row["title"]), gain, *cells]))
    columns = ["data set", "method", "gain", "won", "drawn", "lost"]
    caption = f"Gains in points, and tasks won, drawn and lost, {shot}-shot"
    return Table(caption, columns, lines, stacked=True)


def unknown(run: Run, shot: Shot) -> Table:
    """How well methods tell queries of no class from the others, one line a method."""
    lines = []
    for method, title in run.titles.items():
        rows = run.accuracies(shot, method)
        average = run.average(shot, method) or {}
        if "auroc" in average:
            cells = [
                number(
                    rows[dataset]["auroc"],
                    small=f"FPR@95 {rows[dataset]['fpr95']:.0f}%",
                )
                if dataset in rows
                else Cell()
                for dataset in run.datasets
            ]
            small = f"FPR@95 {average['fpr95']:.0f}%"
            lines.append(Line(title, [*cells, number(average["auroc"], small=small)]))
    columns = ["method", *run.datasets, "average"]
    caption = f"AUROC in percent, and FPR@95, {shot}-shot"
    return Table(caption, columns, lines, stacked=True)


def hubs(run: Run, shot: Shot) -> Table:
    """Purity and hubs, one line a data set."""
    columns = {
        "purity_before": ("purity before, %", ".1f"),
        "purity_after": ("purity after, %", ".1f"),
        "hub_skewness": ("skewness", ".2f"),
        "hubs": ("hubs, %", ".1f"),
        "anti_hubs": ("anti-hubs, %", ".1f"),
    }
    lines = [
        Line(
            row["dataset"],
            [number(row[name], form) for name, (_, form) in columns.items()],
        )
        for row in run.part("neighbours", shot)
        if "hubs" in row
    ]
    caption = f"Neighbours and hubs, {shot}-shot"
    return Table(
        caption, ["data set", *(title for title, _ in columns.values())], lines
    )


def by_purity(run: Run, shot: Shot) -> Table:
    """Gains on tasks with neighbours of some purity, one line a method and range."""
    lines = [
        Line(
            f"{row['from']} to {row['to']}%",
            [
                Cell(row["title"]),
                number(row["episodes"], ","),
                _gain(row["gain"], row["gain_ci95"]),
            ],
        )
        for row in run.part("purity", shot)
    ]
    columns = ["purity", "method", "tasks", "gain"]
    caption = f"Gains by the purity of a task's neighbours after expansion, {shot}-shot"
    return Table(caption, columns, lines)


def _accuracies(rows: dict[Any, Row], columns: Sequence[Any]) -> list[Cell]:
    found = (rows.get(column) for column in columns)
    return [
        number(row["accuracy"], small=plus_minus(row["ci95"]).lstrip())
        if row
        else Cell()
        for row in found
    ]


def _gain(mean: float, ci95: float | None) -> Cell:
    found = verdict(mean, ci95)
    text = f"{SIGNS[found]} {signed(mean)}"
    return Cell(text, mean, plus_minus(ci95).lstrip(), found)


def _average_gain(average: Row) -> Cell:
    if "gain" not in average:
        return Cell("baseline", style="muted")
    return _gain(average["gain"], average["gain_ci95"])


def number(value: float | int | None, form: str = ".2f", small: str = "") -> Cell:
    """Make the cell of a number; empty where there is none."""
    return Cell() if value is None else Cell(f"{value:{form}}", value, small)
