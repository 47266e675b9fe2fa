"""Text for terminals: tables, and names beside what they mean."""

import io
import signal
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

WIDTH = 80
_NAMES = 22  # A longer name has a line of its own.


def ready_stdout() -> None:
    """End quietly when a reader leaves early, as ``| head`` does.

    Letters that are not of the terminal's alphabet are escaped.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def table(
    rows: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    markdown: bool = False,
) -> str:
    """Lay out rows of cells in columns; the first row is the heading.

    Args:
      rows: Cells, as many in each row.
      right: Columns to align on the right.
      markdown: With bars between the columns and a rule below the heading.

    >>> print(table([["class", "images"], ["ant", "7"]], right=frozenset({1})))
    class  images
    ant         7
    >>> print(table([["class", "images"], ["ant", "7"]], markdown=True))
    | class | images |
    |-------|--------|
    | ant   | 7      |
    """
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _width(cell))
            cells.append(space + cell if column in right else cell + space)
        line = f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip()
        lines.append(line)
    if markdown:
        lines.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return "\n".join(lines)


def _width(text: str) -> int:
    """Columns that a terminal uses: two for East Asian letters, none for accents."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def two_columns(pairs: Iterable[tuple[str, str]], *, indent: int = 2) -> str:
    """Lay out names and texts, in lines no longer than ``WIDTH``.

    >>> print(two_columns([("ant", "small"), ("a_name_with_its_own_line", "long")]))
      ant   small
      a_name_with_its_own_line
            long
    """
    pairs = list(pairs)
    short = [len(name) for name, _ in pairs if len(name) <= _NAMES]
    column = indent + max([4, *short]) + 2
    lines = []
    for name, text in pairs:
        start = " " * indent + name
        if len(start) > column - 2:
            lines.append(start)
            start = ""
        lines.append(_hang(f"{start:<{column}}", text))
    return "\n".join(line.rstrip() for line in lines)


def paragraph(text: str, *, indent: int = 2) -> str:
    """Break a text into lines; words are kept whole."""
    return _hang(" " * indent, text)


def _hang(start: str, text: str) -> str:
    """The text after its start, further lines below the text."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
