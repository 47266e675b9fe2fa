"""The figures of a run in one shot; where there is nothing to draw there are none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import (
    FixedLocator,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from rdc_jax.core.statistics import Mean, plus_minus
from rdc_jax.reporting import drawing, variants
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Row, Run, signed
from rdc_jax.runtime.config_values import Shot

_MOST = 8  # Methods whose marks fit into the row of a data set.
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


def accuracy(run: Run, shot: Shot) -> list[Drawing]:
    """Draw accuracies by data set; the paper's as hollow marks."""
    if len(run.titles) > _MOST:
        return []
    chance = 100 / run.config["way"]
    drawn = _by_row(
        run,
        shot,
        _accuracies,
        title=f"Accuracy, {shot}-shot",
        xlabel="accuracy, %",
        chance=chance,
        note=f"Bars are 95% intervals; the dotted line is chance, {chance:.0f}%.",
    )
    if any(one.hollow for one in _accuracies(run, shot)):
        key = ("○", drawing.MUTED, f"hollow: {run.published['label']}")
        drawn = drawn._replace(legend=(*drawn.legend, key))
    return [drawn]


def gains(run: Run, shot: Shot) -> list[Drawing]:
    """Draw gains over the baseline on the same tasks, and their average."""
    if run.baseline is None or not run.compared(shot) or len(run.titles) > _MOST:
        return []
    drawn = _by_row(
        run,
        shot,
        _gains,
        title=f"Gain over {run.titles[run.baseline]}, {shot}-shot",
        xlabel="points; right of the line is better",
        note="Bars are 95% intervals; one that crosses the line may be chance.",
    )
    return [drawn]


def unknown(run: Run, shot: Shot) -> list[Drawing]:
    """Draw how well methods tell queries of no class from the others."""
    if len(run.titles) > _MOST or not any("auroc" in row for row in run.rows):
        return []
    drawn = _by_row(
        run,
        shot,
        _aurocs,
        title=f"Queries of no class, {shot}-shot",
        xlabel="AUROC, %",
        chance=50.0,
        note="Bars are 95% intervals; the dotted line is chance.",
    )
    return [drawn]


def purity(run: Run, shot: Shot) -> list[Drawing]:
    """Draw the purity of neighbour sets before and after their expansion."""
    if not run.part("neighbours", shot):
        return []
    drawn = _by_row(
        run,
        shot,
        _purities,
        title=f"Purity of the queries' neighbours, {shot}-shot",
        xlabel="neighbours of the query's own class, %",
        chance=100 / run.config["way"],
        note="The dotted line is about what random neighbours would have.",
    )
    return [drawn]


def sweeps(run: Run, shot: Shot) -> list[Drawing]:
    """Draw mean accuracies over each parameter that varies, and the paper's."""
    drawings = []
    base = run.average(shot, run.baseline) if run.baseline else None
    for field, found in variants.sweeps(run).items():
        series = []
        for look, (title, names) in enumerate(found):
            own = {value: [run.average(shot, name)] for value, name in names.items()}
            series.append(Series(title, look, _averages(own)))
            lines = {value: run.paper(shot, name) for value, name in names.items()}
            if paper := _averages(lines, "average"):
                label = f"{run.published['label']}, its own data sets"
                title = f"dashed: {title} ({label})"
                series.append(Series(title, look, paper, hollow=True))
        title = f"Accuracy by {field}, {shot}-shot"
        note = "Means over the data sets."
        if run.baseline:
            note += f" The dotted line is {run.titles[run.baseline]}."
        level = base["accuracy"] if base else None
        drawn = _by_value(title, series, (_WIDTH, 2.8), xlabel=field, base=level)
        drawings.append(drawn._replace(note=note))
    return drawings


def steps(run: Run, shot: Shot) -> list[Drawing]:
    """Draw accuracies along fine-tuning: a small figure a data set."""
    looks = {method: look for look, method in enumerate(run.titles)}
    found: dict[str, dict[str, dict[int, Mean]]] = {}
    for row in run.part("curves", shot):
        methods = found.setdefault(row["dataset"], {})
        methods.setdefault(row["method"], {})[row["step"]] = _accuracy(row)
    return [
        _by_value(
            f"{dataset}, {shot}-shot",
            [Series(run.titles[m], looks[m], means) for m, means in methods.items()],
            (3.3, 2.3),
            xlabel="step of fine-tuning",
        )
        for dataset, methods in found.items()
    ]


def _by_row(
    run: Run,
    shot: Shot,
    make: Callable[[Run, Shot], list[Series]],
    *,
    title: str,
    xlabel: str,
    note: str,
    chance: float = 0.0,
) -> Drawing:
    """Draw means with their intervals, in a row each data set."""
    series = make(run, shot)
    labels = list(dict.fromkeys(label for one in series for label in one.means))
    looks = list(dict.fromkeys(one.look for one in series))
    height = 0.6 + len(labels) * max(0.27, 0.17 * len(looks) + 0.1)
    with drawing.canvas(_WIDTH, height) as (figure, axes):
        line: dict[str, Any] = {
            "color": drawing.MUTED,
            "lw": 0.9,
            "ls": ":" if chance else "-",
        }
        axes.axvline(chance, **line)
        for one in series:
            middle = (looks.index(one.look) - (len(looks) - 1) / 2) * 0.8 / len(looks)
            axes.errorbar(
                [mean for mean, _ in one.means.values()],
                [labels.index(label) + middle for label in one.means],
                xerr=[ci95 or 0.0 for _, ci95 in one.means.values()],
                lw=1.2,
                ls="none",
                **_style(one),
            )
        # One scale for all shots: the figures stand side by side.
        everything = [one for each in run.shots for one in make(run, each)]
        axes.set(xlim=_limits(everything, chance), ylim=(len(labels) - 0.5, -0.5))
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.set_xlabel(xlabel)
        axes.grid(axis="x")
        for index, label in enumerate(labels[1:]):
            colour = drawing.MUTED if label == _AVERAGE else drawing.GRID
            axes.axhline(index + 0.5, color=colour, lw=0.6)
        write = "{:.1f}".format if chance else signed
        svg = drawing.export(figure, _told(title, series, write))
    return Drawing(title, svg, note, _legend(series))


def _by_value(
    title: str,
    series: Sequence[Series],
    size: tuple[float, float],
    *,
    xlabel: str,
    base: float | None = None,
) -> Drawing:
    """Draw a line each series, with a band for its intervals."""
    values = sorted({value for one in series for value in one.means})
    with drawing.canvas(*size) as (figure, axes):
        for one in series:
            style, mean = _style(one), np.array([m for m, _ in one.means.values()])
            ci95 = np.array([ci95 or 0.0 for _, ci95 in one.means.values()])
            band: dict[str, Any] = {"color": style["color"], "alpha": 0.18, "lw": 0}
            axes.fill_between([*one.means], mean - ci95, mean + ci95, **band)
            axes.plot([*one.means], mean, "--" if one.hollow else "-", **style)
        if base is not None:
            axes.axhline(base, color=drawing.MUTED, lw=1.0, ls=":")
        if values[0] > 0 and values[-1] / values[0] > _SPREAD:
            axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(values))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set(xlabel=xlabel, ylabel="accuracy, %")
        axes.grid()
        text = _told(f"{title}, by {xlabel}", series, "{:.1f}".format)
        svg = drawing.export(figure, text)
    return Drawing(title, svg, legend=_legend(series))


def _style(series: Series) -> dict[str, Any]:
    look = drawing.mark(series.look)
    style = {"color": look.colour, "marker": look.marker, "ms": 5, "zorder": 3}
    if series.hollow:
        style |= {"mfc": drawing.BACKGROUND, "alpha": 0.75, "zorder": 2}
    return style


def _legend(series: Sequence[Series]) -> tuple[Key, ...]:
    looks = [(drawing.mark(one.look), one) for one in series if one.title]
    return tuple(
        (look.hollow if one.hollow else look.glyph, look.colour, one.title)
        for look, one in looks
    )


def _told(title: str, series: Sequence[Series], write: Callable[[float], str]) -> str:
    """What a figure shows, for those who do not see it."""
    parts = []
    for one in series:
        told = [
            f"{x} {write(mean)}{plus_minus(ci95, 1)}"
            for x, (mean, ci95) in one.means.items()
        ]
        parts.append(f"{one.title or 'paper'}: {', '.join(told)}")
    return ". ".join([title, *parts]) + "."


def _limits(series: Sequence[Series], fixed: float) -> tuple[float, float]:
    """Ends of an axis that shows all intervals and a fixed value.

    >>> _limits([Series("", 0, {"cub": Mean(50.0, 5.0)})], 20.0)
    (18.6, 56.4)
    """
    means = [mean for one in series for mean in one.means.values()]
    ends = [fixed, *(m.mean + s * (m.ci95 or 0.0) for m in means for s in (-1, 1))]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _accuracies(run: Run, shot: Shot) -> list[Series]:
    series = []
    for look, (method, title) in enumerate(run.titles.items()):
        rows = run.accuracies(shot, method)
        series.append(Series(title, look, {d: _accuracy(r) for d, r in rows.items()}))
        for line in run.paper(shot, method):
            paper = {dataset: _accuracy(row) for dataset, row in line["rows"].items()}
            series.append(Series("", look, paper, hollow=True))
    return series


def _gains(run: Run, shot: Shot) -> list[Series]:
    series = []
    for method, rows in run.compared(shot).items():
        means = {row["dataset"]: Mean(row["gain"], row["gain_ci95"]) for row in rows}
        if average := run.average(shot, method):
            means[_AVERAGE] = Mean(average["gain"], average["gain_ci95"])
        look = list(run.titles).index(method)
        series.append(Series(run.titles[method], look, means))
    return series


def _aurocs(run: Run, shot: Shot) -> list[Series]:
    series = []
    for look, (method, title) in enumerate(run.titles.items()):
        rows = run.accuracies(shot, method).items()
        means = {name: Mean(row["auroc"], row["auroc_ci95"]) for name, row in rows}
        series.append(Series(title, look, means))
    return series


def _purities(run: Run, shot: Shot) -> list[Series]:
    rows = run.part("neighbours", shot)
    before, after = (
        _means({row["dataset"]: row[f"purity_{when}"] for row in rows})
        for when in ("before", "after")
    )
    return [
        Series("before expansion", 0, before, hollow=True),
        Series("after expansion", 0, after),
    ]


def _accuracy(row: Row) -> Mean:
    return Mean(row["accuracy"], row["ci95"])


def _averages(
    rows: Mapping[float, Sequence[Row | None]], column: str = "accuracy"
) -> dict[Any, Mean]:
    return _means({x: row[column] for x, found in rows.items() for row in found if row})


def _means(values: Mapping[Any, float | None]) -> dict[Any, Mean]:
    """Those that there are, without intervals."""
    return {key: Mean(v, None) for key, v in values.items() if v is not None}
