"""The page: sections of each run, put into the template."""

from collections.abc import Sequence
from typing import Any

from rdc_jax.evaluation import published
from rdc_jax.evaluation.statistics import plus_minus
from rdc_jax.reporting import (
    drawing,
    examples,
    figures,
    headline,
    provenance,
    tables,
)
from rdc_jax.reporting.runs import Run, signed
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
# What draws the figures of a section, and what makes its tables.
_PARTS: dict[str, tuple[Any, ...]] = {
    "accuracy": (figures.accuracy, tables.accuracies),
    "gains": (figures.gains, tables.gains),
    "parameters": (figures.sweeps,),
    "neighbours": (figures.purity, tables.by_purity),
    "steps": (figures.steps,),
}


def render(runs: Sequence[Run]) -> str:
    """Write the page of at least one run: HTML that needs no other file.

    The same runs give the same text.
    """
    titles = [run.title for run in runs]
    if len(set(titles)) < len(titles):
        titles = [f"{run.title}, {run.folder}" for run in runs]
    return html.template("rdc_jax.reporting", "report.html").render(
        title=titles[0] if len(runs) == 1 else f"{len(runs)} runs",
        runs=[
            _run(run) | {"name": f"run{number}", "title": title}
            for number, (run, title) in enumerate(zip(runs, titles, strict=True), 1)
        ],
        light=drawing.css(0),
        dark=drawing.css(1),
        css=drawing.as_variables,
        label=published.content()["label"],
        signed=signed,
        plus_minus=plus_minus,
        signs=tables.SIGNS,
    )


def _run(run: Run) -> dict[str, Any]:
    """All that the template shows of a run."""
    found: dict[str, Any] = {}
    for section, (draw, *makes) in _PARTS.items():
        figures_of = [one for shot in run.shots for one in draw(run, shot)]
        tables_of = [make(run, shot) for make in makes for shot in run.shots]
        tables_of = [table for table in tables_of if table.lines]
        if figures_of or tables_of:
            found[section] = {"figures": figures_of, "tables": tables_of}
    found["warnings"] = headline.warnings(run)
    found["examples"] = examples.draw(run)
    found["settings"] = provenance.settings(run)
    contents = {s: t for s, t in _SECTIONS.items() if s in _ALWAYS or found.get(s)}
    return found | {
        "contents": contents,
        "answers": headline.answers(run),
        "cards": headline.cards(run),
        "baseline": run.titles[run.baseline] if run.baseline else "",
        "config": run.config,
        "datasets": headline.listing(run.datasets),
        "notes": headline.paper_notes(run),
        "origins": provenance.origins(run),
    }
