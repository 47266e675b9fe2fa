"""Text in two columns, names and what they mean, 80 columns wide."""

import textwrap
from collections.abc import Iterable

WIDTH = 80
_NAMES = 22  # A longer name has a line of its own.


def two_columns(pairs: Iterable[tuple[str, str]], *, indent: int = 2) -> str:
    """Lay out names and texts.

    >>> print(two_columns([("ant", "small"), ("a_name_with_its_own_line", "long")]))
      ant   small
      a_name_with_its_own_line
            long

    Args:
      pairs: A name and a text each.
      indent: Spaces before the names.

    Returns:
      The lines, joined; none is longer than ``WIDTH``, if no word is.
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
