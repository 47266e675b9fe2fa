"""Plots of shares by data set: tasks won and lost, and the purity of neighbours."""

import numpy as np

from rdc_jax.reporting import charts, drawing, palette
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Run

_WHEN = ("before", "after")


def outcomes(run: Run, shot: int, method: str, name: str) -> Drawing:
    """Draw how many tasks a method won, drew and lost against the baseline.

    Args:
      run: With a baseline.
      shot: Labelled images a class.
      method: Name of the method.
      name: Of the figure, unique in the page.
    """
    assert run.baseline is not None
    rows = run.compared(shot)[method]
    fields = ("wins", "losses", "episodes")
    won, lost, total = (np.array([row[name] for row in rows]) for name in fields)
    # Hatched, so that lost tasks are told from won ones without their colours.
    kinds = (
        (palette.HELPS, "", won),
        (palette.GRID, "", total - won - lost),
        (palette.HURTS, "////", lost),
    )
    title = f"{run.titles[method]} against {run.titles[run.baseline]}, {shot}-shot"
    with drawing.canvas(drawing.WIDTH, charts.height(len(rows))) as (fig, ax):
        left = np.zeros(len(rows))
        for colour, hatch, count in kinds:
            share = 100 * count / total
            y = np.arange(len(rows))
            edge = palette.BACKGROUND
            ax.barh(y, share, 0.72, left, fc=colour, ec=edge, hatch=hatch, lw=0.6)
            left += share
        charts.name_rows(ax, [row["dataset"] for row in rows])
        ax.set_xlim(0, 100)
        ax.set_xlabel("share of tasks, %")
        told = [
            f"{row['dataset']}: {row['wins']} won, {row['losses']} lost of "
            f"{row['episodes']}."
            for row in rows
        ]
        svg = drawing.export(fig, name, f"Tasks of {title}. {' '.join(told)}")
    legend = (
        Key("■", "var(--helps)", "won"),
        Key("■", "var(--grid)", "drawn"),
        Key("▨", "var(--hurts)", "lost"),
    )
    return Drawing(svg, f"Tasks won, drawn and lost: {title}.", legend)


def purity(run: Run, shot: int, name: str) -> Drawing:
    """Draw the purity of neighbour sets before and after their expansion.

    Args:
      run: With diagnostics of neighbours.
      shot: Labelled images a class.
      name: Of the figure, unique in the page.
    """
    rows = [
        row
        for row in run.results["neighbours"]
        if row["shot"] == shot and row["purity_before"] is not None
    ]
    before, after = ([row[f"purity_{when}"] for row in rows] for when in _WHEN)
    look = palette.mark(0)
    title = f"Purity of the queries' neighbour sets, {shot}-shot"
    with drawing.canvas(drawing.WIDTH, charts.height(len(rows))) as (fig, ax):
        y = np.arange(len(rows))
        ax.hlines(y, before, after, color=look.colour, lw=1.4)
        for values, face in ((before, palette.BACKGROUND), (after, look.colour)):
            ax.plot(values, y, look.marker, color=look.colour, mfc=face, ms=6)
        charts.rule_rows(ax, [row["dataset"] for row in rows])
        charts.chance_line(ax, run.config["way"])
        ax.set_xlim(charts.padded(_purities(run), 100 / run.config["way"]))
        ax.set_xlabel("neighbours of the query's own class, %")
        told = [
            f"{row['dataset']}: {row['purity_before']:.0f}% before, "
            f"{row['purity_after']:.0f}% after."
            for row in rows
        ]
        svg = drawing.export(fig, name, f"{title}. {' '.join(told)}")
    legend = tuple(
        Key(glyph, look.variable, f"{when} expansion")
        for glyph, when in zip((look.hollow, look.glyph), _WHEN, strict=True)
    )
    caption = f"{title}. The dotted line is about what random neighbours would have."
    return Drawing(svg, caption, legend)


def _purities(run: Run) -> list[charts.Mean]:
    """Purities of all shots, for one scale; they have no intervals."""
    found = [row[f"purity_{w}"] for row in run.results["neighbours"] for w in _WHEN]
    return [charts.Mean(value, 0.0) for value in found if value is not None]
