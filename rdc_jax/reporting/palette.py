"""Colours and marks of the figures, in light and in dark.

Figures are drawn in stand-in colours, which become CSS variables in the page; so one
figure serves both schemes. Every series has a mark of its own besides its colour.
"""

from typing import NamedTuple

INK, MUTED, GRID, BACKGROUND = "#010101", "#020202", "#030303", "#040404"
HELPS, HURTS, UNCLEAR = "#050505", "#060606", "#070707"
SERIES = tuple(f"#0{digit}0{digit}0f" for digit in "12345678")

# Light and dark; each is at least 3:1 against its background.
_VALUES = {
    "ink": (INK, "#1c2127", "#e6e9ec"),
    "muted": (MUTED, "#56606b", "#a9b2bc"),
    "grid": (GRID, "#d5dae0", "#3a424b"),
    "background": (BACKGROUND, "#ffffff", "#14181c"),
    "helps": (HELPS, "#0a6c40", "#62d198"),
    "hurts": (HURTS, "#b3261e", "#ff9c92"),
    "unclear": (UNCLEAR, "#6b7480", "#a9b2bc"),
    "series-1": (SERIES[0], "#0063a3", "#6cb8f0"),
    "series-2": (SERIES[1], "#c24e00", "#ff9d5c"),
    "series-3": (SERIES[2], "#00785a", "#4fd1a8"),
    "series-4": (SERIES[3], "#9a3a86", "#ec9bd6"),
    "series-5": (SERIES[4], "#7a6200", "#e3c545"),
    "series-6": (SERIES[5], "#4a52b8", "#a9b0ff"),
    "series-7": (SERIES[6], "#8a4b32", "#dca58d"),
    "series-8": (SERIES[7], "#3f6b7a", "#8fc3d4"),
}


class Mark(NamedTuple):
    """How a series looks.

    Attributes:
      colour: Stand-in.
      variable: What becomes of it in CSS.
      marker: Of matplotlib.
      glyph: The same, as a character for legends.
      hollow: The outline of the glyph.
    """

    colour: str
    variable: str
    marker: str
    glyph: str
    hollow: str


_MARKERS = (
    ("o", "●", "○"),
    ("s", "■", "□"),
    ("^", "▲", "△"),
    ("D", "◆", "◇"),
    ("v", "▼", "▽"),
)


def mark(place: int) -> Mark:
    """Give the look of a series by its place; 40 of them differ.

    >>> mark(0).glyph, mark(1).glyph, mark(8).variable
    ('●', '■', 'var(--series-1)')
    """
    colour = place % len(SERIES)
    variable = f"var(--series-{colour + 1})"
    return Mark(SERIES[colour], variable, *_MARKERS[place % len(_MARKERS)])


def variables() -> dict[str, str]:
    """CSS variables by the stand-ins that they replace."""
    return {value[0]: f"var(--{name})" for name, value in _VALUES.items()}


def css(scheme: int) -> str:
    """Declarations of the variables; 0: light, 1: dark."""
    return " ".join(f"--{name}: {v[1 + scheme]};" for name, v in _VALUES.items())
