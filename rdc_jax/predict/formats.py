"""Answers as a table for people, JSON or CSV."""

import csv
import io
import json
from typing import Any

from rdc_jax.predict.answers import Outcome, Row, percent

FORMATS = ("table", "json", "csv")

_BOLD, _YELLOW, _PLAIN = "\033[1m", "\033[33m", "\033[0m"
_COLUMNS = (
    "image",
    "class",
    "probability",
    "rejected",
    "second_class",
    "second_probability",
    "class_without_rdc",
    "problem",
)


def render(outcome: Outcome, form: str, *, colour: bool = False) -> str:
    """Write the answers in one of ``FORMATS``.

    Args:
      outcome: Of the run.
      form: One of ``FORMATS``.
      colour: Whether a table may have a terminal's colours.

    Returns:
      Text that ends in a newline.
    """
    if form == "json":
        return _as_json(outcome)
    return _as_csv(outcome) if form == "csv" else _as_table(outcome, colour)


def _as_json(outcome: Outcome) -> str:
    content = {
        **outcome.summary,
        "notes": list(outcome.notes),
        "predictions": [row.as_json() for row in outcome.rows],
        "unreadable": [
            {"image": image, "reason": reason} for image, reason in outcome.unreadable
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _as_csv(outcome: Outcome) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in outcome.rows:
        writer.writerow(
            (
                *(row.image, row.class_name, f"{row.probability:.4f}"),
                *("yes" if row.rejected else "no", row.second),
                *(f"{row.second_probability:.4f}", row.plain, ""),
            )
        )
    for image, reason in outcome.unreadable:
        writer.writerow((image, *[""] * 6, f"unreadable: {reason}"))
    return buffer.getvalue()


def _as_table(outcome: Outcome, colour: bool) -> str:
    header = ("image", "class", "probability", "")
    lines = [
        (row.image, row.class_name, percent(row.probability), _remark(row))
        for row in outcome.rows
    ]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    paint = _painter(colour)
    text = [paint(_line(header, widths), _BOLD)]
    for row, line in zip(outcome.rows, lines, strict=True):
        text.append(paint(_line(line, widths), _YELLOW if row.rejected else ""))
    return "\n".join(text) + "\n"


def _remark(row: Row) -> str:
    remarks = []
    if row.rejected:
        remarks.append(f"rejected; next {row.second} {percent(row.second_probability)}")
    if row.changed:
        remarks.append(f"without RDC: {row.plain}")
    return "; ".join(remarks)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(left).rstrip()


def _painter(colour: bool) -> Any:
    return lambda text, code: f"{code}{text}{_PLAIN}" if colour and code else text
