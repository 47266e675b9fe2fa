"""The page: sections of each run, put into the template."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jinja2

from rdc_jax.evaluation.statistics import plus_minus
from rdc_jax.reporting import (
    charts,
    curves,
    embedding,
    palette,
    plots,
    published,
    rankings,
    settings,
    shares,
    summary,
    sweeps,
    tables,
    variants,
)
from rdc_jax.reporting.drawing import Drawing
from rdc_jax.reporting.runs import Run
from rdc_jax.reporting.tables import Table

# Sections of a run, in order; those without content are left out.
_SECTIONS = {
    "summary": "Summary",
    "accuracy": "Accuracy",
    "gains": "Gains on the same tasks",
    "sweeps": "Parameters",
    "neighbours": "Neighbours",
    "warnings": "Warnings",
    "curves": "Steps of fine-tuning",
    "embeddings": "Tasks on a plane",
    "rankings": "Ranking lists",
    "provenance": "Settings and origin",
}
_ALWAYS = {"summary", "warnings", "provenance"}


def render(runs: Sequence[Run]) -> str:
    """Write the page.

    Args:
      runs: What it reports, in this order; at least one.

    Returns:
      HTML that needs no other file. The same runs give the same text.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rdc_jax.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    template = environment.get_template("report.html")
    several, titles = len(runs) > 1, _titles(runs)
    return template.render(
        title=f"{len(runs)} runs" if several else titles[0],
        overview=tables.overview(runs, titles) if several else [],
        runs=[
            _run(run, f"run{place}") | {"title": title}
            for place, (run, title) in enumerate(zip(runs, titles, strict=True), 1)
        ],
        light=palette.css(0),
        dark=palette.css(1),
        verdicts=tables.VERDICTS,
        label=published.label(),
        signed=summary.signed,
        plus_minus=plus_minus,
    )


def _run(run: Run, name: str) -> dict[str, Any]:
    """All that the template shows of a run; an empty part has no section."""
    main = summary.headlines(run)
    parts = {
        "name": name,
        "setting": summary.setting(run),
        "answers": summary.answers(run),
        "cards": list(main.values()),
        "sentences": [s for shot in run.shots for s in summary.sentences(run, shot)],
        "remarks": summary.remarks(run),
        "warnings": [_by_title(text, run) for text in run.results["warnings"]],
        "glance": tables.glance(run),
        "accuracy": _accuracy(run, name),
        "notes": published.notes(run),
        "baseline": run.titles[run.baseline] if run.baseline else "",
        "gains": _gains(run, list(main), name),
        "sweeps": _sweeps(run, name),
        "neighbours": _neighbours(run, name),
        "curves": _curves(run, name),
        "embeddings": [
            embedding.panels(exhibit, f"{name}-tsne-{place}")
            for place, exhibit in enumerate(run.exhibits)
        ],
        "rankings": [
            (embedding.title_of(exhibit), rankings.rankings(exhibit))
            for exhibit in run.exhibits
        ],
        "stale": run.stale,
        "readings": settings.readings(run),
        "fields": settings.fields(run),
        "origins": settings.origins(run),
    }
    contents = {
        section: title
        for section, title in _SECTIONS.items()
        if section in _ALWAYS or parts[section]
    }
    return parts | {"contents": contents}


def _titles(runs: Sequence[Run]) -> list[str]:
    """Titles of runs; those that are not the only one add where they come from."""
    titles = [run.title for run in runs]
    return [
        f"{title}, {run.folder}" if titles.count(title) > 1 else title
        for run, title in zip(runs, titles, strict=True)
    ]


class _Part(NamedTuple):
    """Figures and tables of a section."""

    figures: list[Drawing]
    tables: list[Table]


def _accuracy(run: Run, name: str) -> _Part:
    few = run.shots if len(run.titles) <= charts.MOST else []
    return _Part(
        [plots.accuracy(run, shot, f"{name}-accuracy-{shot}") for shot in few],
        [tables.accuracies(run, shot) for shot in run.shots],
    )


def _gains(run: Run, main: Sequence[str], name: str) -> _Part | None:
    shots = [shot for shot in run.shots if run.compared(shot)]
    if not shots:
        return None
    bars = [
        shares.outcomes(run, shot, method, f"{name}-tasks-{place}-{shot}")
        for place, method in enumerate(main)
        for shot in shots
    ]
    draw = plots.forest if len(run.titles) <= charts.MOST else plots.ladder
    return _Part(
        [draw(run, shot, f"{name}-forest-{shot}") for shot in shots] + bars,
        [tables.paired(run, shot) for shot in shots],
    )


def _neighbours(run: Run, name: str) -> _Part | None:
    found = {row["shot"] for row in run.results["neighbours"]}
    shots = [shot for shot in run.shots if shot in found]
    if not shots:
        return None
    return _Part(
        [shares.purity(run, shot, f"{name}-purity-{shot}") for shot in shots],
        [
            table
            for shot in shots
            for table in (tables.neighbours(run, shot), tables.by_purity(run, shot))
            if table.lines
        ],
    )


def _sweeps(run: Run, name: str) -> _Part | None:
    """Curves over parameters; their numbers are in the tables of accuracies."""
    found = [
        sweeps.panel(run, shot, field, series, f"{name}-sweep-{field}-{shot}")
        for field, series in variants.sweeps(run).items()
        for shot in run.shots
    ]
    return _Part(found, []) if found else None


def _curves(run: Run, name: str) -> _Part | None:
    found = {row["shot"] for row in run.results.get("curves", ())}
    shots = [shot for shot in run.shots if shot in found]
    if not shots:
        return None
    drawings = [curves.panels(run, s, f"{name}-steps-{s}") for s in shots]
    return _Part(
        [drawing for each in drawings for drawing in each],
        [tables.steps(run, shot) for shot in shots],
    )


def _by_title(text: str, run: Run) -> str:
    """Call methods by their titles instead of their names in the config."""
    names = sorted(run.titles, key=len, reverse=True)
    either = "|".join(map(re.escape, names))
    return re.sub(rf"(?<!\w)({either})(?!\w)", lambda m: run.titles[m[1]], text)
