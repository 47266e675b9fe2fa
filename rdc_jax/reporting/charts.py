"""What plots with one row a data set have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from rdc_jax.evaluation.statistics import Mean
from rdc_jax.reporting import palette
from rdc_jax.reporting.drawing import Key

_FRAME = 0.6  # Inches of axis and label.
_ROW = 0.27  # Inches, at least.
_MARK = 0.17  # Inches between the marks of two methods.
# Methods whose marks fit into the row of a data set.
MOST = 8


class Spot(NamedTuple):
    """Where a method is in each row.

    Attributes:
      series: Decides colour and marker.
      place: Among the marks of the row, from the top.
      marks: How many there are.
    """

    series: int
    place: int
    marks: int


def height(rows: int, marks: int = 1) -> float:
    """Inches of a plot with so many rows, and marks in each of them."""
    return _FRAME + rows * max(_ROW, _MARK * marks + 0.1)


def name_rows(ax: Axes, labels: Sequence[str]) -> None:
    """Name the rows from top to bottom."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def rule_rows(ax: Axes, labels: Sequence[str]) -> None:
    """Name the rows, and draw hair lines between them."""
    name_rows(ax, labels)
    ax.grid(axis="x")
    for place in range(1, len(labels)):
        ax.axhline(place - 0.5, color=palette.GRID, lw=0.6)


def chance_line(ax: Axes, way: int) -> None:
    """Mark the share that guessing would have."""
    ax.axvline(100 / way, color=palette.MUTED, lw=0.8, ls=":")


def draw_means(
    ax: Axes,
    means: Mapping[str, Mean],
    labels: Sequence[str],
    spot: Spot,
    *,
    filled: bool = True,
) -> None:
    """Draw the means of a method with their intervals, each in its row.

    Args:
      ax: With named rows.
      means: By label.
      labels: Of all rows.
      spot: Of the method.
      filled: Hollow marks are the paper's.
    """
    look = palette.mark(spot.series)
    offset = (spot.place - (spot.marks - 1) / 2) * 0.8 / spot.marks
    ax.errorbar(
        [value.mean for value in means.values()],
        [labels.index(name) + offset for name in means],
        xerr=[value.ci95 or 0.0 for value in means.values()],
        color=look.colour,
        marker=look.marker,
        ms=5,
        mfc=look.colour if filled else palette.BACKGROUND,
        alpha=1.0 if filled else 0.75,
        lw=1.2,
        ls="none",
    )


def padded(means: Iterable[Mean], *fixed: float) -> tuple[float, float]:
    """Ends of an axis that shows all intervals and some fixed values.

    >>> padded([Mean(50.0, 5.0)], 20.0)
    (18.6, 56.4)
    """
    ends = [*fixed]
    for value in means:
        ends += [value.mean - (value.ci95 or 0.0), value.mean + (value.ci95 or 0.0)]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def keys(titles: Mapping[str, str], chosen: Iterable[str]) -> tuple[Key, ...]:
    """Give legend entries of some methods; colours go by the place among all."""
    looks: dict[str, Any] = {n: palette.mark(i) for i, n in enumerate(titles)}
    return tuple(Key(looks[n].glyph, looks[n].variable, titles[n]) for n in chosen)
