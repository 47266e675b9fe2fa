"""The page: the sections of a run, put into the template."""

import pathlib
from typing import Any

from rdc_jax.core.statistics import plus_minus
from rdc_jax.reporting import (
    classes,
    drawing,
    example_tasks,
    figures,
    hardest,
    summary,
    tables,
)
from rdc_jax.reporting.runs import Run, read, signed
from rdc_jax.runtime import html
from rdc_jax.runtime.config_values import flat

# Sections, in order; those without content are left out.
_SECTIONS = {
    "summary": "Summary",
    "accuracy": "Accuracy",
    "gains": "Gains on the same tasks",
    "parameters": "Parameters",
    "classes": "Classes",
    "hardest": "Hardest images",
    "unknown": "None of the classes",
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
    "unknown": (figures.unknown, tables.unknown),
    "neighbours": (figures.purity, tables.hubs, tables.by_purity),
    "steps": (figures.steps,),
}


def render(workdir: pathlib.Path) -> str:
    """Write the page of a run: HTML that needs no other file.

    The same results give the same text.

    Raises:
      UserError: The results, or an example task, cannot be read.
    """
    run = read(workdir)
    content: dict[str, Any] = {
        name: part for name in _PARTS if (part := _part(run, name))
    }
    content["examples"] = example_tasks.draw(run, example_tasks.read(run, workdir))
    content["classes"] = classes.content(run)
    content["hardest"] = hardest.read(run, workdir)
    content["settings"] = settings(run)
    content["warnings"] = run.results["warnings"]
    return html.template("rdc_jax.reporting", "report.html").render(
        run=run,
        content=content,
        sections={
            name: title
            for name, title in _SECTIONS.items()
            if name in _ALWAYS or content.get(name)
        },
        cards=summary.cards(run),
        fewest=min(row["episodes"] for row in run.rows),
        origins=origins(run),
        light=drawing.css(0),
        dark=drawing.css(1),
        css=drawing.as_variables,
        signed=signed,
        plus_minus=plus_minus,
        signs=tables.SIGNS,
    )


def _part(run: Run, name: str) -> dict[str, Any]:
    """Figures and tables of a section, for all shots; empty if there are none."""
    draw, *makes = _PARTS[name]
    drawn = [one for shot in run.shots for one in draw(run, shot)]
    made = [make(run, shot) for make in makes for shot in run.shots]
    made = [table for table in made if table.lines]
    return {"figures": drawn, "tables": made} if drawn or made else {}


def settings(run: Run) -> dict[str, str]:
    """List all settings by the names they have on the command line."""
    values = flat(run.config)
    return {f"config.{name}": _text(value) for name, value in values.items()}


def origins(run: Run) -> dict[str, str]:
    """Name the backbone, the data, the software and the machine."""
    provenance = run.provenance
    checkpoint, backend = provenance["checkpoint"], provenance["backend"]
    prints = {**provenance.get("data", {}), **provenance.get("plugins", {})}
    return {
        "backbone": checkpoint["arch"],
        "its training": checkpoint.get("training") or "the checkpoint does not say",
        "its fingerprint": checkpoint["fingerprint"],
        **{f"fingerprint of {name}": digest for name, digest in prints.items()},
        **provenance["versions"],
        "computed on": f"{backend['platform']} ({backend['device']})",
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
