"""The page: sections of each run, put into the template."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rdc_jax.evaluation import published
from rdc_jax.evaluation.statistics import plus_minus
from rdc_jax.reporting import (
    drawing,
    examples,
    figures,
    headline,
    provenance,
    tables,
    variants,
)
from rdc_jax.reporting.drawing import Drawing
from rdc_jax.reporting.runs import Run, signed
from rdc_jax.reporting.tables import Table
from rdc_jax.runtime import html

# Sections of a run, in order; those without content are left out.
_SECTIONS = {
    "summary": "Summary",
    "accuracy": "Accuracy",
    "gains": "Gains on the same tasks",
    "parameters": "Parameters",
    "neighbours": "Neighbours",
    "warnings": "Warnings",
    "steps": "Steps of fine-tuning",
    "examples": "Example tasks",
    "settings": "Settings and origin",
}
_ALWAYS = {"summary", "warnings"}


class _Part(NamedTuple):
    """Figures and tables of a section."""

    figures: list[Drawing]
    tables: list[Table]


def render(runs: Sequence[Run]) -> str:
    """Write the page of at least one run: HTML that needs no other file.

    The same runs give the same text.
    """
    titles = [run.title for run in runs]
    for place, run in enumerate(runs):
        if [one.title for one in runs].count(run.title) > 1:
            titles[place] += f", {run.folder}"
    return html.template("rdc_jax.reporting", "report.html").render(
        title=titles[0] if len(runs) == 1 else f"{len(runs)} runs",
        runs=[
            _run(run, f"run{place}") | {"title": title}
            for place, (run, title) in enumerate(zip(runs, titles, strict=True), 1)
        ],
        light=drawing.css(0),
        dark=drawing.css(1),
        css=drawing.as_variables,
        label=published.content()["label"],
        signed=signed,
        plus_minus=plus_minus,
        signs=tables.SIGNS,
    )


def _run(run: Run, name: str) -> dict[str, Any]:
    """All that the template shows of a run; an empty part has no section."""
    few = run.shots if len(run.titles) <= figures.MOST else []
    compared = [shot for shot in run.shots if run.compared(shot)]
    known = [shot for shot in run.shots if run.part("neighbours", shot)]
    stepped = [shot for shot in run.shots if run.part("curves", shot)]
    sweeps = variants.sweeps(run).items()
    parts = {
        "accuracy": _Part(
            [figures.accuracy(run, s, f"{name}-accuracy-{s}") for s in few],
            [tables.accuracies(run, s) for s in run.shots],
        ),
        "gains": _Part(
            [figures.gains(run, s, f"{name}-gains-{s}") for s in compared if few],
            [tables.gains(run, s) for s in compared],
        ),
        "parameters": _Part(
            [
                figures.sweep(run, s, field, found, f"{name}-sweep-{field}-{s}")
                for field, found in sweeps
                for s in run.shots
            ],
            [],  # Their numbers are among the accuracies.
        ),
        "neighbours": _Part(
            [figures.purity(run, s, f"{name}-purity-{s}") for s in known],
            [
                table
                for make in (tables.neighbours, tables.by_purity)
                for table in [make(run, s) for s in known]
                if table.lines
            ],
        ),
        "steps": _Part(
            [
                one
                for s in stepped
                for one in figures.steps(run, s, f"{name}-steps-{s}")
            ],
            [tables.steps(run, s) for s in stepped],
        ),
    }
    shown: dict[str, Any] = {
        section: part for section, part in parts.items() if part.figures or part.tables
    }
    shown |= {
        "warnings": headline.warnings(run),
        "examples": examples.draw(run, [*run.examples], f"{name}-example"),
        "settings": provenance.settings(run),
    }
    return shown | {
        "name": name,
        "contents": {
            section: title
            for section, title in _SECTIONS.items()
            if section in _ALWAYS or shown.get(section)
        },
        "answers": headline.answers(run),
        "cards": [*headline.cards(run).values()],
        "baseline": run.titles[run.baseline] if run.baseline else "",
        "config": run.config,
        "datasets": headline.listing(run.datasets),
        "methods": headline.listing([*run.titles.values()]),
        "notes": headline.paper_notes(run),
        "origins": provenance.origins(run),
    }
