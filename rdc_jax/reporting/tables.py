"""The tables: cells with a text, and a number to sort by."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rdc_jax.evaluation import published
from rdc_jax.evaluation.statistics import plus_minus
from rdc_jax.reporting.runs import Row, Run, average_gain, signed, verdict

# Nobody has to tell help from harm by colour.
SIGNS = {"helps": "▲", "unclear": "●", "hurts": "▼"}

_NEIGHBOURS = {
    "purity before": ("purity_before", ".1f", "%"),
    "purity after": ("purity_after", ".1f", "%"),
    "neighbours before": ("neighbours_before", ".1f", ""),
    "neighbours after": ("neighbours_after", ".1f", ""),
    "pairs that share none": ("jaccard_one", ".1f", "%"),
}


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
      name: Unique among the tables of a run.
      caption: Above it.
      columns: Their titles; the first is that of the rows' heads.
      lines: Its rows.
      stacked: Whether intervals stand below their means, for many columns.
    """

    name: str
    caption: str
    columns: list[str]
    lines: list[Line]
    stacked: bool = False


def accuracies(run: Run, shot: int) -> Table:
    """One line a method, each followed by the published one."""
    compared, lines, paper = run.compared(shot), [], {}
    for method, title in run.titles.items():
        if rows := run.accuracies(shot, method):
            cells = [
                *_accuracies(rows, run.datasets),
                _number(run.average(shot, method)),
            ]
            if run.baseline:
                cells.append(_average_gain(compared.get(method)))
            note = method if method.lower() != title.lower() else ""
            lines.append(Line(title, cells, note))
        if line := run.published(shot, method):
            paper[len(lines)] = (published.title_of(method, title), line)
    _mark_best(lines)
    for place, (title, line) in reversed(paper.items()):
        lines.insert(place, _published(run, title, line))
    systems = published.systems(run.config, run.datasets, shot)
    lines += [_published(run, title, line) for title, line in systems.items()]
    columns = ["method", *run.datasets, "average"]
    if run.baseline:
        columns.append("gain")
    caption = f"Accuracy in percent ± 95% interval, {shot}-shot"
    return Table(f"accuracy-{shot}", caption, columns, lines, stacked=True)


def _published(run: Run, title: str, line: published.Line) -> Line:
    average = _number(line.average)
    if average.text and not line.same:
        average = average._replace(small=f"its own {len(published.datasets())}")
    cells = [*_accuracies(line.rows, run.datasets), average]
    return Line(title, cells + [Cell()] * bool(run.baseline), published=True)


def _mark_best(lines: list[Line]) -> None:
    """Let the largest number of each column stand out."""
    for place in range(len(lines[0].cells) if lines else 0):
        values = [line.cells[place].value for line in lines]
        best = max((value for value in values if value is not None), default=None)
        for line, value in zip(lines, values, strict=True):
            if value is not None and value == best:
                cell = line.cells[place]
                line.cells[place] = cell._replace(style=f"best {cell.style}")


def gains(run: Run, shot: int) -> Table:
    """Gains on the same tasks, one line for each method and data set."""
    lines = []
    for rows in reversed(run.compared(shot).values()):  # The fullest method first.
        for row in rows:
            drawn = row["episodes"] - row["wins"] - row["losses"]
            counts = (row["wins"], drawn, row["losses"])
            gain = _gain(row["gain"], row["gain_ci95"])
            cells = [_number(count, ",") for count in counts]
            lines.append(Line(row["dataset"], [Cell(row["title"]), gain, *cells]))
    columns = ["data set", "method", "gain", "won", "drawn", "lost"]
    caption = f"Gains in points, and tasks won, drawn and lost, {shot}-shot"
    return Table(f"gains-{shot}", caption, columns, lines)


def by_purity(run: Run, shot: int) -> Table:
    """Gains on tasks with neighbours of some purity, one line a method and range."""
    lines = [
        Line(
            f"{row['from']} to {row['to']}%",
            [
                Cell(row["title"]),
                _number(row["episodes"], ","),
                _gain(row["gain"], row["gain_ci95"]),
            ],
        )
        for row in run.part("purity", shot)
    ]
    columns = ["purity", "method", "tasks", "gain"]
    caption = f"Gains by the purity of a task's neighbours after expansion, {shot}-shot"
    return Table(f"gains-by-purity-{shot}", caption, columns, lines)


def neighbours(run: Run, shot: int) -> Table:
    """Neighbour sets of the queries, before and after their expansion."""
    lines = [
        Line(
            row["dataset"],
            [_number(row[n], *form) for n, *form in _NEIGHBOURS.values()],
        )
        for row in run.part("neighbours", shot)
    ]
    caption = f"Neighbour sets of the queries, {shot}-shot"
    return Table(f"neighbours-{shot}", caption, ["data set", *_NEIGHBOURS], lines)


def steps(run: Run, shot: int) -> Table:
    """Accuracy after each step of fine-tuning, one line a method and data set."""
    found: dict[tuple[str, str], dict[Any, Row]] = {}
    for row in run.part("curves", shot):
        found.setdefault((row["dataset"], row["method"]), {})[row["step"]] = row
    every = sorted({step for rows in found.values() for step in rows})
    lines = [
        Line(dataset, [Cell(run.titles[method]), *_accuracies(rows, every)])
        for (dataset, method), rows in found.items()
    ]
    caption = f"Accuracy in percent after each step of fine-tuning, {shot}-shot"
    columns = ["data set", "method", *(f"step {step}" for step in every)]
    return Table(f"steps-{shot}", caption, columns, lines, stacked=True)


def _accuracies(rows: dict[Any, Row], columns: Sequence[Any]) -> list[Cell]:
    found = (rows.get(column) for column in columns)
    return [
        _number(row["accuracy"], small=plus_minus(row["ci95"]).lstrip())
        if row
        else Cell()
        for row in found
    ]


def _gain(mean: float, ci95: float | None) -> Cell:
    found = verdict(mean, ci95)
    text = f"{SIGNS[found]} {signed(mean)}"
    return Cell(text, mean, plus_minus(ci95).lstrip(), found)


def _average_gain(rows: Sequence[Row] | None) -> Cell:
    if not rows:
        return Cell("baseline", style="muted")
    return _gain(*average_gain(rows)[:2])


def _number(
    value: float | None, form: str = ".2f", unit: str = "", small: str = ""
) -> Cell:
    return Cell() if value is None else Cell(f"{value:{form}}{unit}", value, small)
