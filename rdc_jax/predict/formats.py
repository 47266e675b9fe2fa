"""Answers as a table for people, JSON, CSV, or a page to look through."""

import base64
import collections
import csv
import io
import json

from rdc_jax.predict.answers import Answers, Row, accuracy, percent
from rdc_jax.runtime.html import template
from rdc_jax.runtime.text import table

FORMATS = ("table", "json", "csv")

_BOLD, _YELLOW, _PLAIN = "\033[1m", "\033[33m", "\033[0m"
_COLUMNS = (
    *("image", "class", "probability", "rejected"),
    *("second_class", "second_probability", "class_without_rdc"),
    *("unknown_score", "unknown", "problem"),
)


def render(answers: Answers, form: str, *, colour: bool = False) -> str:
    """Write the answers in one of ``FORMATS``, a table in a terminal's colours."""
    if form == "json":
        return _as_json(answers)
    return _as_csv(answers) if form == "csv" else _as_table(answers, colour)


def render_page(answers: Answers) -> str:
    """Write answers with thumbnails as HTML: one file, no scripts, nothing loaded."""
    rows = sorted(answers.rows, key=lambda row: (-row.probability, row.image))
    counts = collections.Counter(row.class_name for row in rows)
    return template("rdc_jax.predict", "page.html").render(
        answers=answers,
        accuracy=accuracy(answers),
        rows=rows,
        unsure=sum(row.rejected for row in rows),
        unknown=sum(row.unknown for row in rows),
        changed=sum(row.changed for row in rows),
        counts={n: counts[n] for n in answers.support.class_names if counts[n]},
        used=sorted({j for row in rows for j in row.nearest}),
        threshold=f"{100 * answers.reject_below:.3g}%",
        percent=percent,
        uri=lambda jpeg: f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}",
    )


def _as_json(answers: Answers) -> str:
    support, names = answers.support, answers.support.class_names
    predictions = [
        {
            "image": row.image,
            "class": row.class_name,
            "probability": round(row.probability, 4),
            "rejected": row.rejected,
            "unknown_score": round(row.unknown_score, 4),
            "unknown": row.unknown,
            "class_without_rdc": row.plain,
            "probabilities": {k: round(p, 4) for k, p in row.probabilities.items()},
            "nearest_supports": [
                {"image": support.images[j], "class": names[support.labels[j]]}
                for j in row.nearest
            ],
        }
        for row in answers.rows
    ]
    content = {
        **answers.summary,
        "notes": list(answers.notes),
        "advice": answers.advice and answers.advice._asdict(),
        "predictions": predictions,
        "unreadable": [
            {"image": image, "reason": reason} for image, reason in answers.unreadable
        ],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _as_csv(answers: Answers) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in answers.rows:
        first = row.image, row.class_name, f"{row.probability:.4f}"
        second = row.second, f"{row.second_probability:.4f}"
        rejected = "yes" if row.rejected else "no"
        unknown = f"{row.unknown_score:.4f}", "yes" if row.unknown else "no"
        writer.writerow((*first, rejected, *second, row.plain, *unknown, ""))
    for image, reason in answers.unreadable:
        writer.writerow((image, *[""] * 8, f"unreadable: {reason}"))
    return buffer.getvalue()


def _as_table(answers: Answers, colour: bool) -> str:
    rows = answers.rows
    cells = [
        (row.image, row.class_name, percent(row.probability), _remark(row))
        for row in rows
    ]
    lines = table([("image", "class", "probability", ""), *cells]).splitlines()
    if colour:
        lines[0] = f"{_BOLD}{lines[0]}{_PLAIN}"
        for i, row in enumerate(rows, 1):
            lines[i] = f"{_YELLOW}{lines[i]}{_PLAIN}" if row.rejected else lines[i]
    return "\n".join(lines) + "\n"


def _remark(row: Row) -> str:
    remarks = []
    if row.rejected:
        remarks.append(f"unsure; next {row.second} {percent(row.second_probability)}")
    if row.unknown:
        remarks.append(f"maybe none of these ({percent(row.unknown_score)})")
    if row.changed:
        remarks.append(f"alone: {row.plain}")
    return "; ".join(remarks)
