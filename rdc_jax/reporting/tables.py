"""Tables of the page: cells with a text to show and a value to sort by."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rdc_jax.evaluation.published import Line as PublishedLine
from rdc_jax.evaluation.published import title_of
from rdc_jax.evaluation.statistics import plus_minus
from rdc_jax.reporting import gains, published, summary
from rdc_jax.reporting.runs import Row, Run
from rdc_jax.reporting.summary import signed

# Verdicts are told by a word and a sign, not by colour alone.
VERDICTS = {"helps": "▲ helps", "hurts": "▼ hurts", "unclear": "● not clear"}


class Cell(NamedTuple):
    """One cell.

    Attributes:
      text: What is shown; empty: there is no such number.
      sort: What rows are sorted by; None comes last.
      small: A second line, as the interval of a mean.
      style: Name of its look.
    """

    text: str = ""
    sort: float | str | None = None
    small: str = ""
    style: str = ""


class Line(NamedTuple):
    """One row of a table; ``published`` ones are the paper's and look different."""

    head: str
    cells: list[Cell]
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


def glance(run: Run) -> Table:
    """All methods, averaged over data sets."""
    lines = []
    for shot in run.shots:
        found = {outcome.method: outcome for outcome in summary.outcomes(run, shot)}
        for method, title in run.titles.items():
            accuracy = _number(run.average(shot, method))
            cells = [Cell(f"{shot}", shot), accuracy]
            cells += _glance_gain(found.get(title))
            lines.append(Line(title, cells))
    caption = "All methods, averaged over the data sets"
    titles = ["method", "shot", "accuracy, %", "gain", "helps on", "hurts on"]
    return Table("glance", caption, [*titles, "not clear on"], lines)


def _glance_gain(outcome: summary.Outcome | None) -> list[Cell]:
    if outcome is None:
        return [Cell("baseline", style="muted"), *3 * [Cell()]]
    gain = outcome.gain
    counts = [len(gain.by_verdict[v]) for v in ("helps", "hurts", "unclear")]
    return [_gain(gain.mean, gain.ci95, gain.verdict)] + [
        Cell(str(count), count) for count in counts
    ]


def accuracies(run: Run, shot: int) -> Table:
    """One line a method, each followed by the published one."""
    lines = []
    for method, title in run.titles.items():
        if own := run.of(shot, method):
            average = _number(run.average(shot, method))
            lines.append(Line(title, [*_accuracy_cells(own, run.datasets), average]))
        if paper := published.line(run, shot, method):
            named = title_of(method, title)
            lines.append(_published(named, paper, run.datasets))
    for title, paper in published.systems(run, shot).items():
        lines.append(_published(title, paper, run.datasets))
    _mark_best([line for line in lines if not line.published])
    return Table(
        f"accuracy-{shot}",
        f"Accuracy in percent ± 95% interval, {shot}-shot; the best of a column is "
        "bold",
        ["method", *run.datasets, "average"],
        lines,
        stacked=True,
    )


def _published(title: str, line: PublishedLine, datasets: Sequence[str]) -> Line:
    average = _number(line.average)
    if average.text and not line.same:
        average = average._replace(small=published.own_datasets())
    cells = [*_accuracy_cells(line.rows, datasets), average]
    return Line(title, cells, published=True)


def _mark_best(lines: list[Line]) -> None:
    """Let the largest number of each column stand out."""
    for place in range(len(lines[0].cells) if lines else 0):
        column = [line.cells[place].sort for line in lines]
        best = max((n for n in column if isinstance(n, float)), default=None)
        for line in lines:
            cell = line.cells[place]
            if best is not None and cell.sort == best:
                line.cells[place] = cell._replace(style="best")


def _accuracy_cells(rows: dict[str, Row], datasets: Sequence[str]) -> list[Cell]:
    return [_accuracy(rows[name]) if name in rows else Cell() for name in datasets]


def paired(run: Run, shot: int) -> Table:
    """Gains on the same tasks, one line for each method and data set."""
    lines = []
    for rows in reversed(run.compared(shot).values()):  # The fullest method first.
        for row in rows:
            ties = row["episodes"] - row["wins"] - row["losses"]
            counts = [row["wins"], ties, row["losses"]]
            verdict = gains.row_verdict(row)
            cells = [
                Cell(row["title"], row["title"]),
                _gain(row["gain"], row["gain_ci95"], verdict),
                Cell(VERDICTS[verdict], VERDICTS[verdict], style=verdict),
                *(Cell(f"{count:,}", count) for count in counts),
            ]
            lines.append(Line(row["dataset"], cells))
    assert run.baseline is not None
    return Table(
        f"gains-{shot}",
        f"Gains over {run.titles[run.baseline]} in points, {shot}-shot, and how many "
        "tasks were won, drawn and lost",
        ["data set", "method", "gain", "verdict", "won", "drawn", "lost"],
        lines,
    )


def neighbours(run: Run, shot: int) -> Table:
    """Neighbour sets of the queries, before and after their expansion."""
    shown: dict[str, tuple[str, Callable[[Any], str]]] = {
        "purity before": ("purity_before", "{:.1f}%".format),
        "purity after": ("purity_after", "{:.1f}%".format),
        "neighbours before": ("neighbours_before", "{:.1f}".format),
        "neighbours after": ("neighbours_after", "{:.1f}".format),
        "pairs that share none": ("jaccard_one", "{:.1f}%".format),
    }
    lines = [
        Line(
            row["dataset"],
            [
                Cell() if row[name] is None else Cell(write(row[name]), row[name])
                for name, write in shown.values()
            ],
        )
        for row in run.results["neighbours"]
        if row["shot"] == shot
    ]
    caption = f"Neighbour sets of the queries before and after expansion, {shot}-shot"
    return Table(f"neighbours-{shot}", caption, ["data set", *shown], lines)


def by_purity(run: Run, shot: int) -> Table:
    """Gains on tasks with neighbours of some purity, one line a method and range."""
    lines = []
    for row in run.results.get("purity", ()):
        if row["shot"] == shot:
            verdict = gains.row_verdict(row)
            cells = [
                Cell(row["title"], row["title"]),
                Cell(f"{row['episodes']:,}", row["episodes"]),
                _gain(row["gain"], row["gain_ci95"], verdict),
                Cell(VERDICTS[verdict], VERDICTS[verdict], style=verdict),
            ]
            lines.append(Line(f"{row['from']} to {row['to']}%", cells))
    return Table(
        f"gains-by-purity-{shot}",
        "Gains over the baseline by the purity of a task's neighbours after expansion, "
        f"tasks of all data sets, {shot}-shot",
        ["purity", "method", "tasks", "gain", "verdict"],
        lines,
    )


def steps(run: Run, shot: int) -> Table:
    """Accuracy after each step of fine-tuning, one line a method and data set."""
    rows = [row for row in run.results.get("curves", ()) if row["shot"] == shot]
    every = sorted({row["step"] for row in rows})
    lines = []
    for dataset, method in dict.fromkeys((r["dataset"], r["method"]) for r in rows):
        own = {
            row["step"]: row
            for row in rows
            if (row["dataset"], row["method"]) == (dataset, method)
        }
        title = run.titles.get(method, method)
        cells = [_accuracy(own[step]) if step in own else Cell() for step in every]
        lines.append(Line(dataset, [Cell(title, title), *cells]))
    caption = f"Accuracy in percent after each step of fine-tuning, {shot}-shot"
    columns = ["data set", "method", *(f"step {step}" for step in every)]
    return Table(f"steps-{shot}", caption, columns, lines, stacked=True)


def overview(runs: Sequence[Run], titles: Sequence[str]) -> list[Table]:
    """Several runs side by side: their averages, then every data set, shot by shot."""
    shots = sorted({shot for run in runs for shot in run.shots})
    return [_averages(runs, titles), *(_beside(runs, titles, shot) for shot in shots)]


def _averages(runs: Sequence[Run], titles: Sequence[str]) -> Table:
    lines = []
    for run, title in zip(runs, titles, strict=True):
        for line in glance(run).lines:
            count = len(run.datasets)
            head = Cell(line.head, line.head)
            cells = [head, Cell(f"{count}", count), *line.cells[:3]]
            lines.append(Line(title, cells))
    columns = ["run", "method", "data sets", "shot", "accuracy, %", "gain"]
    return Table("overview", "Averages of all runs", columns, lines)


def _beside(runs: Sequence[Run], titles: Sequence[str], shot: int) -> Table:
    datasets = list(dict.fromkeys(name for run in runs for name in run.datasets))
    lines = []
    for run, title in zip(runs, titles, strict=True):
        for method, name in run.titles.items():
            if rows := run.of(shot, method):
                cells = _accuracy_cells(rows, datasets)
                lines.append(Line(title, [Cell(name, name), *cells]))
    caption = f"Accuracy in percent ± 95% interval of all runs, {shot}-shot"
    columns = ["run", "method", *datasets]
    return Table(f"overview-{shot}", caption, columns, lines, stacked=True)


def _gain(mean: float, ci95: float | None, verdict: gains.Verdict) -> Cell:
    return Cell(signed(mean), mean, plus_minus(ci95).lstrip(), verdict)


def _accuracy(row: Row) -> Cell:
    small = plus_minus(row["ci95"]).lstrip()
    return Cell(f"{row['accuracy']:.2f}", row["accuracy"], small)


def _number(value: float | None) -> Cell:
    return Cell() if value is None else Cell(f"{value:.2f}", value)
