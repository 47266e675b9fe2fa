"""The figures: accuracies, gains, sweeps, purity of neighbours, steps of fine-tuning.

Each function draws a run in one shot; ``name`` is unique in the page.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import (
    FixedLocator,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from rdc_jax.evaluation import published
from rdc_jax.evaluation.statistics import Mean, plus_minus
from rdc_jax.reporting import drawing, variants
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Row, Run, average_gain, signed

# Methods whose marks fit into the row of a data set.
MOST = 8
_WIDTH = 4.5  # Inches: on a phone the figure fills the screen and can still be read.
_SPREAD = 10  # Values that differ by more than this factor go on a logarithmic axis.
_AVERAGE = "average"


class Series(NamedTuple):
    """Marks of one look.

    Attributes:
      title: In the legend; empty: it has no entry.
      look: See ``drawing.mark``.
      means: By the label of a row, or by the value on the horizontal axis.
      hollow: Whether it is drawn in outlines: such marks are the paper's.
    """

    title: str
    look: int
    means: Mapping[Any, Mean]
    hollow: bool = False


def accuracy(run: Run, shot: int, name: str) -> Drawing:
    """Draw accuracies by data set; the paper's as hollow marks."""
    chance = 100 / run.config["way"]
    series = _accuracies(run, shot)
    # One scale for all shots: the figures stand side by side.
    everything = [one for each in run.shots for one in _accuracies(run, each)]
    drawn = _by_row(
        f"Accuracy, {shot}-shot",
        name,
        series,
        run.datasets,
        xlabel="accuracy, %",
        limits=_limits(everything, chance),
        chance=chance,
        note=f"Bars are 95% intervals; the dotted line is chance, {chance:.0f}%.",
    )
    if any(one.hollow for one in series):
        key = Key("○", drawing.MUTED, f"hollow: {published.content()['label']}")
        drawn = drawn._replace(legend=(*drawn.legend, key))
    return drawn


def gains(run: Run, shot: int, name: str) -> Drawing:
    """Draw gains over the baseline on the same tasks, and their average."""
    assert run.baseline is not None
    everything = [one for each in run.shots for one in _gains(run, each)]
    return _by_row(
        f"Gain over {run.titles[run.baseline]}, {shot}-shot",
        name,
        _gains(run, shot),
        [*run.datasets, _AVERAGE],
        xlabel="points; right of the line is better",
        limits=_limits(everything, 0.0),
        note="Bars are 95% intervals; one that crosses the line may be chance.",
    )


def purity(run: Run, shot: int, name: str) -> Drawing:
    """Draw the purity of neighbour sets before and after their expansion."""
    chance = 100 / run.config["way"]
    everything = [one for each in run.shots for one in _purities(run, each)]
    series = _purities(run, shot)
    return _by_row(
        f"Purity of the queries' neighbours, {shot}-shot",
        name,
        series,
        [*series[0].means],
        xlabel="neighbours of the query's own class, %",
        limits=_limits(everything, chance),
        chance=chance,
        note="The dotted line is about what random neighbours would have.",
    )


def sweep(
    run: Run, shot: int, field: str, found: Sequence[variants.Sweep], name: str
) -> Drawing:
    """Draw mean accuracies over the values of a parameter, and the paper's."""
    series = []
    for look, (title, names) in enumerate(found):
        lines = {value: run.published(shot, method) for value, method in names.items()}
        paper = {v: line.average for v, line in lines.items() if line}
        label = f"dashed: {title} ({published.content()['label']}, its own data sets)"
        own = {value: run.average(shot, method) for value, method in names.items()}
        series.append(Series(title, look, _means(own)))
        if means := _means(paper):
            series.append(Series(label, look, means, hollow=True))
    note = "Means over the data sets."
    base = run.average(shot, run.baseline) if run.baseline else None
    if run.baseline:
        note += f" The dotted line is {run.titles[run.baseline]}."
    title = f"Accuracy by {field}, {shot}-shot"
    drawn = _by_value(title, name, series, (_WIDTH, 2.8), xlabel=field, base=base)
    return drawn._replace(note=note)


def steps(run: Run, shot: int, name: str) -> list[Drawing]:
    """Draw accuracies along fine-tuning: a small figure a data set."""
    found: dict[str, dict[str, dict[int, Mean]]] = {}
    for row in run.part("curves", shot):
        methods = found.setdefault(row["dataset"], {})
        methods.setdefault(row["method"], {})[row["step"]] = _accuracy(row)
    return [
        _by_value(
            f"{dataset}, {shot}-shot",
            f"{name}-{index}",
            [Series(run.titles[m], i, of) for i, (m, of) in enumerate(methods.items())],
            (3.3, 2.3),
            xlabel="step of fine-tuning",
        )
        for index, (dataset, methods) in enumerate(found.items())
    ]


def _by_row(
    title: str,
    name: str,
    series: Sequence[Series],
    labels: Sequence[str],
    *,
    xlabel: str,
    limits: tuple[float, float],
    note: str,
    chance: float | None = None,
) -> Drawing:
    """Draw means with their intervals, a row each label."""
    looks = list(dict.fromkeys(one.look for one in series))
    height = 0.6 + len(labels) * max(0.27, 0.17 * len(looks) + 0.1)
    with drawing.canvas(_WIDTH, height) as (figure, axes):
        axes.axvline(
            chance or 0, color=drawing.MUTED, lw=0.9, ls=":" if chance else "-"
        )
        for one in series:
            means = one.means
            row = (looks.index(one.look) - (len(looks) - 1) / 2) * 0.8 / len(looks)
            axes.errorbar(
                [mean.mean for mean in means.values()],
                [labels.index(label) + row for label in means],
                xerr=[mean.ci95 or 0.0 for mean in means.values()],
                lw=1.2,
                ls="none",
                **_style(one),
            )
        axes.set_yticks(range(len(labels)), labels)
        axes.set(xlim=limits, ylim=(len(labels) - 0.5, -0.5), xlabel=xlabel)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.grid(axis="x")
        for index in range(1, len(labels)):
            last = labels[index] == _AVERAGE
            colour = drawing.MUTED if last else drawing.GRID
            axes.axhline(index - 0.5, color=colour, lw=0.6)
        write = signed if chance is None else "{:.1f}".format
        svg = drawing.export(figure, name, _told(title, series, write))
    return Drawing(title, svg, note, _legend(series))


def _by_value(
    title: str,
    name: str,
    series: Sequence[Series],
    size: tuple[float, float],
    *,
    xlabel: str,
    base: float | None = None,
) -> Drawing:
    """Draw a line each series, with a band for the intervals."""
    with drawing.canvas(*size) as (figure, axes):
        for one in series:
            means, style = dict(sorted(one.means.items())), _style(one)
            mean = np.array([value.mean for value in means.values()])
            ci95 = np.array([value.ci95 or 0.0 for value in means.values()])
            band = {"color": style["color"], "alpha": 0.18, "lw": 0}
            axes.fill_between([*means], mean - ci95, mean + ci95, **band)
            axes.plot([*means], mean, lw=1.4, ls="--" if one.hollow else "-", **style)
        if base is not None:
            axes.axhline(base, color=drawing.MUTED, lw=1.0, ls=":")
        _name_values(axes, sorted({value for one in series for value in one.means}))
        axes.set(xlabel=xlabel, ylabel="accuracy, %")
        axes.grid()
        text = _told(f"{title}, by {xlabel}", series, "{:.1f}".format)
        svg = drawing.export(figure, name, text)
    return Drawing(title, svg, legend=_legend(series))


def _name_values(axes: Axes, values: Sequence[float]) -> None:
    """Tick the values that were tried; those far apart on a logarithmic axis."""
    if values[0] > 0 and values[-1] / values[0] > _SPREAD:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _style(series: Series) -> dict[str, Any]:
    look = drawing.mark(series.look)
    style = {"color": look.colour, "marker": look.marker, "ms": 5, "zorder": 3}
    if series.hollow:
        style |= {"mfc": drawing.BACKGROUND, "alpha": 0.75, "zorder": 2}
    return style


def _legend(series: Sequence[Series]) -> tuple[Key, ...]:
    looks = [(drawing.mark(one.look), one) for one in series if one.title]
    return tuple(
        Key(look.hollow if one.hollow else look.glyph, look.colour, one.title)
        for look, one in looks
    )


def _told(title: str, series: Sequence[Series], write: Callable[[float], str]) -> str:
    """What a figure shows, for those who do not see it."""
    parts = []
    for one in series:
        told = [
            f"{x} {write(v)}{plus_minus(ci, 1)}" for x, (v, ci) in one.means.items()
        ]
        parts.append(f"{one.title or 'paper'}: {', '.join(told)}")
    return ". ".join([title, *parts]) + "."


def _limits(series: Iterable[Series], fixed: float) -> tuple[float, float]:
    """Ends of an axis that shows all intervals and a fixed value.

    >>> _limits([Series("", 0, {"cub": Mean(50.0, 5.0)})], 20.0)
    (18.6, 56.4)
    """
    means = [mean for one in series for mean in one.means.values()]
    ends = [fixed, *(m.mean + s * (m.ci95 or 0.0) for m in means for s in (-1, 1))]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _accuracies(run: Run, shot: int) -> list[Series]:
    series = []
    for look, (method, title) in enumerate(run.titles.items()):
        rows = run.accuracies(shot, method)
        series.append(Series(title, look, {d: _accuracy(r) for d, r in rows.items()}))
        if line := run.published(shot, method):
            paper = {dataset: _accuracy(row) for dataset, row in line.rows.items()}
            series.append(Series("", look, paper, hollow=True))
    return series


def _gains(run: Run, shot: int) -> list[Series]:
    looks = list(run.titles)
    return [
        Series(
            run.titles[method],
            looks.index(method),
            {row["dataset"]: Mean(row["gain"], row["gain_ci95"]) for row in rows}
            | {_AVERAGE: Mean(*average_gain(rows)[:2])},
        )
        for method, rows in run.compared(shot).items()
    ]


def _purities(run: Run, shot: int) -> list[Series]:
    rows = run.part("neighbours", shot)
    return [
        Series(
            f"{when} expansion",
            0,
            _means({row["dataset"]: row[f"purity_{when}"] for row in rows}),
            hollow=when == "before",
        )
        for when in ("before", "after")
    ]


def _accuracy(row: Row) -> Mean:
    return Mean(row["accuracy"], row["ci95"])


def _means(values: Mapping[Any, float | None]) -> dict[Any, Mean]:
    """Means without intervals; those that there are."""
    return {key: Mean(v, None) for key, v in values.items() if v is not None}
