"""A page to look through the answers: one file, no scripts, nothing loaded."""

import base64
import collections
import html
import pathlib
import string

from rdc_jax.predict.answers import Nearest, Outcome, Row, percent

_TEMPLATE = pathlib.Path(__file__).with_name("page.html")


def render_page(
    outcome: Outcome,
    thumbnails: tuple[bytes, ...],
    support_thumbnails: tuple[bytes, ...],
    *,
    title: str = "What is in these pictures?",
) -> str:
    """Write the answers as an HTML page.

    Args:
      outcome: Of the run.
      thumbnails: JPEG bytes of each query, by ``Row.number``.
      support_thumbnails: JPEG bytes of each support.
      title: Of the page.

    Returns:
      The page.
    """
    rows = sorted(outcome.rows, key=lambda row: (-row.probability, row.image))
    used = sorted({near.number for row in rows for near in row.nearest})
    summary = outcome.summary
    fields = {
        "title": html.escape(title),
        "headline": html.escape(_headline(outcome)),
        "basis": html.escape(
            f"By {summary['supports']} labelled pictures and {summary['method']}, on "
            f"features of {summary['backbone']}; temperature "
            f"{summary['temperature']:.3g}."
        ),
        "notes": _list(outcome.notes, "notes"),
        "counts": _counts(rows, summary["classes"]),
        "total": str(len(rows)),
        "rejected": str(sum(row.rejected for row in rows)),
        "changed": str(sum(row.changed for row in rows)),
        "cards": "\n".join(_card(row, thumbnails[row.number]) for row in rows),
        "unreadable": _unreadable(outcome.unreadable),
        "threshold": outcome.threshold,
        "symbols": "\n".join(_symbol(i, support_thumbnails[i]) for i in used),
    }
    template = string.Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(fields)


def _headline(outcome: Outcome) -> str:
    count, rejected = len(outcome.rows), sum(row.rejected for row in outcome.rows)
    text = f"{count} {'picture' if count == 1 else 'pictures'} classified into "
    text += f"{len(outcome.summary['classes'])} classes, {rejected} of them rejected"
    text += f" (below {outcome.threshold})."
    if outcome.unreadable:
        text += f" {len(outcome.unreadable)} could not be read."
    return text


def _counts(rows: list[Row], classes: list[str]) -> str:
    """How often each class was the answer, for those that were."""
    counts = collections.Counter(row.class_name for row in rows)
    lines = [
        f'<tr><th scope="row">{html.escape(name)}</th>'
        f'<td class="number">{counts[name]}</td></tr>'
        for name in classes
        if counts[name]
    ]
    head = '<tr><th scope="col">class</th><th scope="col">pictures</th></tr>'
    return (
        "<details><summary>How many of each class</summary>\n"
        f'<table aria-label="How many of each class"><thead>{head}</thead><tbody>\n'
        + "\n".join(lines)
        + "\n</tbody></table></details>"
    )


def _card(row: Row, thumbnail: bytes) -> str:
    flags = " data-rejected" * row.rejected + " data-changed" * row.changed
    name, image = html.escape(row.class_name), html.escape(row.image)
    near = "\n".join(_near(one) for one in row.nearest)
    return f"""<li class="card"{flags}>
<div class="top"><img src="{_uri(thumbnail)}" alt="The picture {image}">
<div><h3>{name}</h3><p class="file">{image}</p>
<p>{html.escape(percent(row.probability))} <span class="soft">probability</span></p>
<span class="bar" aria-hidden="true">{_bar(row.probability)}</span>
{_tags(row)}</div></div>
<p class="label">Nearest labelled pictures</p>
<ol class="near">
{near}
</ol></li>"""


def _bar(probability: float) -> str:
    return f'<span style="width:{probability:.1%}"></span>'


def _tags(row: Row) -> str:
    tags = []
    if row.rejected:
        other = f"{html.escape(row.second)} {percent(row.second_probability)}"
        tags.append(f'<span class="tag rejected">rejected; next: {other}</span>')
    if row.changed:
        plain = html.escape(row.plain)
        tags.append(f'<span class="tag changed">without RDC: {plain}</span>')
    return "\n".join(tags)


def _near(near: Nearest) -> str:
    name, image = html.escape(near.class_name), html.escape(near.image)
    return (
        f'<li><svg role="img" aria-label="{image}"><use href="#s{near.number}"/></svg>'
        f"<span>{name}</span></li>"
    )


def _symbol(index: int, thumbnail: bytes) -> str:
    """A support's picture, embedded once and shown by all cards that refer to it."""
    return (
        f'<symbol id="s{index}" viewBox="0 0 100 100"><image width="100" height="100" '
        f'preserveAspectRatio="xMidYMid slice" href="{_uri(thumbnail)}"/></symbol>'
    )


def _unreadable(unreadable: list[tuple[str, str]]) -> str:
    if not unreadable:
        return ""
    lines = tuple(f"{image}: {reason}" for image, reason in unreadable)
    return f"<h2>Could not be read</h2>\n{_list(lines, 'notes')}"


def _list(lines: tuple[str, ...], style: str) -> str:
    if not lines:
        return ""
    items = "\n".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<ul class="{style}">\n{items}\n</ul>'


def _uri(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
