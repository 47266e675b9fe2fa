"""Figures of matplotlib as SVG inside the page, and their colours.

A figure is drawn in the light colours, which become CSS variables in the page: so one
figure serves light and dark. Every series has a marker besides its colour.
"""

import contextlib
import html
import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rdc_jax.runtime import checksums

# Light and dark. Letters have a contrast of 4.5:1 or more, marks of 3:1 or more.
COLOURS = {
    "ink": ("#1c2127", "#e6e9ec"),
    "muted": ("#56606b", "#a9b2bc"),
    "grid": ("#d5dae0", "#3a424b"),
    "background": ("#ffffff", "#14181c"),
    "helps": ("#0a6c40", "#62d198"),
    "hurts": ("#b3261e", "#ff9c92"),
    "series-1": ("#0063a3", "#6cb8f0"),
    "series-2": ("#c24e00", "#ff9d5c"),
    "series-3": ("#00785a", "#4fd1a8"),
    "series-4": ("#9a3a86", "#ec9bd6"),
    "series-5": ("#7a6200", "#e3c545"),
    "series-6": ("#4a52b8", "#a9b0ff"),
    "series-7": ("#8a4b32", "#dca58d"),
    "series-8": ("#3f6b7a", "#8fc3d4"),
}
INK, MUTED, GRID, BACKGROUND, HELPS, HURTS, *_SERIES = (c for c, _ in COLOURS.values())

# Of matplotlib; as a character; as the outline of one.
_MARKERS = (
    ("o", "●", "○"),
    ("s", "■", "□"),
    ("^", "▲", "△"),
    ("D", "◆", "◇"),
    ("v", "▼", "▽"),
)

_STYLE: Any = {
    "svg.fonttype": "none",  # Letters stay letters: small, and in the page's font.
    "svg.hashsalt": "rdc_jax",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.parse_math": False,  # Names of classes may have dollar signs.
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
}


class Mark(NamedTuple):
    """How a series looks: in figures, and as a character in legends."""

    colour: str
    marker: str
    glyph: str
    hollow: str


# An entry of a legend: a character, its colour, and what it stands for.
Key = tuple[str, str, str]


class Drawing(NamedTuple):
    """A figure of the page: its title, an SVG element, a note, and the legend."""

    title: str
    svg: str
    note: str = ""
    legend: tuple[Key, ...] = ()


def mark(index: int) -> Mark:
    """Give the look of a series; the first 40 differ.

    >>> mark(0).glyph, mark(1).glyph, mark(8).colour == mark(0).colour
    ('●', '■', True)
    """
    return Mark(_SERIES[index % len(_SERIES)], *_MARKERS[index % len(_MARKERS)])


def css(scheme: int) -> str:
    """Declare the colours as CSS variables; scheme 0 is light, 1 is dark."""
    return " ".join(f"--{name}: {c[scheme]};" for name, c in COLOURS.items())


def as_variables(text: str) -> str:
    """Replace the light colours in a text by the CSS variables that have them.

    >>> as_variables("fill: #ffffff")
    'fill: var(--background)'
    """
    for name, (light, _) in COLOURS.items():
        text = text.replace(light, f"var(--{name})")
    return text


@contextlib.contextmanager
def canvas(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure, its size in inches, with one pair of axes in the page's style.

    Draw and ``export`` inside the block: the style holds only there.
    """
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)  # type: ignore
        yield figure, figure.subplots()


def export(figure: Figure, description: str) -> str:
    """Turn a figure into an SVG element for HTML; the description is its text.

    Its ids begin with a digest of its content, so that figures can share a page.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    # Neither head nor metadata; and a style element would hold for the whole page.
    text = re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.DOTALL)
    unwanted = r"<(metadata|style).*?</\1>|<!--.*?-->\n?"
    text = re.sub(unwanted, "", text, flags=re.DOTALL)
    width, height = (72 * inches for inches in figure.get_size_inches())
    tag = (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'style="max-width: {width * 4 / 3:.0f}px" '
        f'aria-label="{html.escape(description)}">'
    )
    text = re.sub(r"<svg[^>]*>", lambda _: tag, text, count=1)
    text = text.replace("'DejaVu Sans'", "var(--font)").replace("xlink:href", "href")
    return _with_ids(as_variables(text), f"f{checksums.of_json(text)[:12]}")


def _with_ids(text: str, prefix: str) -> str:
    """Drop ids that nothing refers to, and put a prefix before the others."""
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r' id="([^"]*)"', renamed, text)
    return re.sub(r'(href="|url\()#', rf"\g<1>#{prefix}-", text)
