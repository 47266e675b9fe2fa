"""Figures of matplotlib as SVG inside the page."""

import contextlib
import html
import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rdc_jax.reporting import palette

# Inches; on a phone the figure fills the screen and its letters stay legible.
WIDTH = 4.5

_STYLE: Any = {
    "svg.fonttype": "none",  # Letters stay letters: small, and in the page's font.
    "svg.hashsalt": "rdc_jax",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.parse_math": False,  # Names of classes may have dollar signs.
    "text.color": palette.INK,
    "axes.edgecolor": palette.MUTED,
    "axes.labelcolor": palette.INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": palette.MUTED,
    "ytick.color": palette.MUTED,
    "xtick.labelcolor": palette.INK,
    "ytick.labelcolor": palette.INK,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
}


class Key(NamedTuple):
    """An entry of a legend: a glyph in a colour, and what it stands for."""

    glyph: str
    colour: str
    text: str


class Drawing(NamedTuple):
    """A figure of the page.

    Attributes:
      svg: An element for HTML.
      caption: Below the figure.
      legend: Above it.
    """

    svg: str
    caption: str
    legend: tuple[Key, ...] = ()


@contextlib.contextmanager
def canvas(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure with one pair of axes in the page's style.

    Draw and ``export`` inside the block: the style holds only there.

    Args:
      width: In inches.
      height: In inches.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)  # type: ignore
        yield figure, figure.subplots()


def export(figure: Figure, name: str, description: str) -> str:
    """Turn a figure into an SVG element for HTML.

    Args:
      figure: To be drawn.
      name: Of the figure, unique in the page.
      description: The alternative text.

    Returns:
      The element: its colours are CSS variables, its ids begin with the name.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # A style element would hold for the whole page.
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    text = text.replace("'DejaVu Sans'", "var(--font)").replace("xlink:href", "href")
    for stand_in, variable in palette.variables().items():
        text = text.replace(stand_in, variable)
    return _root(_rename(text, name), figure, description)


def _rename(text: str, name: str) -> str:
    """Drop ids that nothing refers to, and make the others unique."""
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{name}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r' id="([^"]*)"', renamed, text)
    return re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", text)


def _root(text: str, figure: Figure, description: str) -> str:
    """Replace the opening tag: size by CSS, a role, an alternative text."""
    width, height = (72 * inches for inches in figure.get_size_inches())
    tag = (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'style="max-width: {width * 4 / 3:.0f}px" '
        f'aria-label="{html.escape(description)}">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: tag, text, count=1)
