"""Accuracy over a parameter that a run varies, beside the paper's curve."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from rdc_jax.reporting import drawing, palette, published
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Run
from rdc_jax.reporting.variants import Series

_SPREAD = 10  # Values that differ by more than this factor go on a logarithmic axis.


def panel(run: Run, shot: int, field: str, series: list[Series], name: str) -> Drawing:
    """Draw mean accuracies over the values of a parameter.

    Args:
      run: To be shown.
      shot: Labelled images a class.
      field: The parameter.
      series: Methods that differ in it.
      name: Of the figure, unique in the page.
    """
    keys, told = [], []
    values = sorted({value for each in series for value in each.names})
    with drawing.canvas(drawing.WIDTH, 2.8) as (figure, axes):
        for place, each in enumerate(series):
            look = palette.mark(place)
            own = {v: run.average(shot, n) for v, n in each.names.items()}
            points = {v: mean for v, mean in own.items() if mean is not None}
            style: dict[str, Any] = {"color": look.colour, "marker": look.marker}
            axes.plot([*points], [*points.values()], lw=1.4, ms=5, **style)
            keys.append(Key(look.glyph, look.variable, each.title))
            parts = [f"{value:g}: {mean:.1f}%" for value, mean in points.items()]
            told.append(f"{each.title}: {', '.join(parts)}.")
            paper = {
                value: mean
                for value, method in each.names.items()
                if (mean := published.average(run, shot, method)) is not None
            }
            style |= {"mfc": palette.BACKGROUND, "ls": "--"}
            axes.plot([*paper], [*paper.values()], lw=1.0, ms=5, alpha=0.75, **style)
            if paper:
                text = f"dashed: {each.title} ({published.label()}, its own data sets)"
                keys.append(Key(look.hollow, look.variable, text))
        _baseline(axes, run, shot)
        _scale(axes, values)
        axes.set_xlabel(field)
        axes.set_ylabel("mean accuracy, %")
        axes.grid()
        text = f"Mean accuracy over {field}, {shot}-shot. {' '.join(told)}"
        svg = drawing.export(figure, name, text)
    caption = f"Mean accuracy over the data sets by {field}, {shot}-shot."
    if run.baseline:
        caption += f" The dotted line is {run.titles[run.baseline]}."
    return Drawing(svg, caption, tuple(keys))


def _baseline(axes: Axes, run: Run, shot: int) -> None:
    if run.baseline and (mean := run.average(shot, run.baseline)) is not None:
        axes.axhline(mean, color=palette.MUTED, lw=1.0, ls=":")


def _scale(axes: Axes, values: list[float]) -> None:
    """Tick the values that were tried, on a logarithmic axis if they are far apart."""
    if values[0] > 0 and values[-1] / values[0] > _SPREAD:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
