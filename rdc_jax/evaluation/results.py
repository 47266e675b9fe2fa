"""From the ledger to ``results.json``, ``tasks.csv`` and ``table.md``.

Reports and comparisons read nothing else.
"""

import csv
import io
import json
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from rdc_jax.core import statistics
from rdc_jax.evaluation import (
    diagnostics,
    example_tasks,
    published,
    table,
    unknown,
    warnings,
)
from rdc_jax.evaluation.confusion import Answered
from rdc_jax.evaluation.hardest import THUMBNAILS, hardest, save
from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.evaluation.options import Options
from rdc_jax.runtime import checksums
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.files import write_text
from rdc_jax.runtime.redact import publishable

RESULTS, TABLE, TASKS = "results.json", "table.md", "tasks.csv"

Row = dict[str, Any]
# From a data set and shot to its tasks with their answers.
Find = Callable[[str, Shot], Answered]

_FORMAT = 1
_ADVICE = "make room, then run the same command"


def write(
    workdir: pathlib.Path,
    ledger: Ledger,
    options: Options,
    datasets: Sequence[str],
    find: Find,
) -> dict[str, Any]:
    """Sum a ledger up, and write what comes out into the work directory.

    Args:
      workdir: Folder that the run writes to.
      ledger: With all its episodes.
      options: The typed config of the run.
      datasets: Names of the data sets, in the order of the tables.
      find: Gives the tasks of a data set and shot, with the answers of all methods.

    Returns:
      What ``results.json`` holds.

    Raises:
      UserError: A file cannot be written.
    """
    tasks = by_task(ledger, options, datasets)
    results = collect(ledger, options, datasets, find)
    if options.predictions:
        results |= _hardest(workdir / THUMBNAILS, options, datasets, find)
    results = checksums.add(results | {"tasks": checksums.of_json(tasks)})
    write_text(workdir / TASKS, tasks, _ADVICE)
    write_text(workdir / RESULTS, _json(results), _ADVICE)
    write_text(workdir / TABLE, table.markdown(results), _ADVICE)
    return results


def _hardest(
    path: pathlib.Path, options: Options, datasets: Sequence[str], find: Find
) -> dict[str, Any]:
    """Rows of the hardest images, and the digest of their thumbnails."""
    rows, pictures = [], []
    for shot in options.shots:
        for dataset in datasets:
            answered = find(dataset, shot)
            for row in hardest(answered):
                pictures.append(answered.pixels[row.pop("row")])
                rows.append({"dataset": dataset, "shot": shot} | row)
    return {"hardest": rows, "thumbnails": save(path, pictures)}


def by_task(ledger: Ledger, options: Options, datasets: Sequence[str]) -> str:
    """Make ``tasks.csv``: right answers of each method, a line a task.

    See ``write`` for the arguments.
    """
    names = [method.name for method in options.methods]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["dataset", "shot", "task", "queries", *names])
    for shot in options.shots:
        for dataset in datasets:
            counts = _counts(ledger, dataset, shot, options.episodes)
            right_em = np.stack([counts[name] for name in names], axis=1)
            asked = diagnostics.queries(counts, options.spec(shot))
            asked_e = np.broadcast_to(asked, len(right_em)).tolist()
            for task, right_m in enumerate(right_em.tolist()):
                lines.writerow([dataset, shot, task, asked_e[task], *right_m])
    return text.getvalue()


def collect(
    ledger: Ledger, options: Options, datasets: Sequence[str], find: Find
) -> dict[str, Any]:
    """Make the content of ``results.json``: nothing in it depends on time or place.

    See ``write`` for the arguments.
    """
    rows, classes, curves, neighbours, purity, faults = [], [], [], [], [], []
    class_names = {}
    for shot in options.shots:
        parts: dict[str, list[Row]] = {"rows": [], "curves": [], "neighbours": []}
        diagnosed = []
        for dataset in datasets:
            place = {"dataset": dataset, "shot": shot}
            counts = _counts(ledger, dataset, shot, options.episodes)
            answered = find(dataset, shot)
            class_names[dataset] = list(answered.class_names)
            found = {"rows": _method_rows(counts, answered, options, shot)}
            for entry in options.methods:
                own = {"method": entry.name, "title": entry.title}
                classes.append(place | own | answered.confusion(entry.name))
            found["curves"] = diagnostics.accuracy_by_step(counts, options, shot)
            if diagnostics.COLUMNS[0] in counts:
                sets = diagnostics.neighbour_sets(
                    counts, options.spec(shot), options.distractor_queries
                )
                found["neighbours"] = [sets]
                diagnosed.append(counts)
            for name, more in found.items():
                parts[name] += [place | row for row in more]
        faults += warnings.collect(options, shot, **parts)
        purity += diagnostics.gains_by_purity(diagnosed, options, shot)
        rows += parts["rows"]
        curves += parts["curves"]
        neighbours += parts["neighbours"]
    return {
        "format": _FORMAT,
        "title": options.title,
        "choice": options.choice,
        "rows": rows,
        "averages": _averages(rows),
        "published": published.collect(
            rows,
            way=0 if options.varies or options.distractor_queries else options.way,
            systems=options.systems,
        ),
        "class_names": class_names,
        "classes": classes,
        "curves": curves,
        "neighbours": neighbours,
        "purity": purity,
        "warnings": faults,
        "examples": example_tasks.run_id(ledger.header),
        "provenance": _provenance(ledger, options),
    }


def _json(results: dict[str, Any]) -> str:
    """Write JSON for people too: lists of numbers, as rows of matrices, in a line."""
    text = json.dumps(results, indent=1) + "\n"
    # Strings have no line breaks in JSON, so none of them looks like such a list.
    number = r"(?:-?[\d.e+-]+|null)"
    rows = rf"\[\n\s*{number}(?:,\n\s*{number})*\n\s*\]"
    return re.sub(rows, lambda found: re.sub(r"\s+", "", found[0]), text)


def _provenance(ledger: Ledger, options: Options) -> dict[str, Any]:
    """The ledger's header, which may be of a run with other episodes or baseline.

    Places are left out: results are published, the ledger is not.
    """
    now = {
        "episodes": options.episodes,
        "baseline": options.baseline,
        "methods": ",".join(entry.name for entry in options.methods),
        "source": options.source,
    }
    data = {**ledger.header["data"]}
    for group in ledger.groups.values():
        data |= {name: group[name] for name in ("source",) if name in group}
    config = publishable(ledger.header["config"] | now)
    return {**ledger.header, "config": config, "data": data}


def _counts(
    ledger: Ledger, dataset: str, shot: Shot, episodes: int
) -> dict[str, Int[np.ndarray, "e"]]:
    """The columns of all groups of methods."""
    columns: dict[str, Int[np.ndarray, e]] = {}
    for group, record in ledger.groups.items():
        stage = Stage(dataset, shot, group)
        if ledger.done(stage):  # Methods may be left out before they are begun.
            counts_em = ledger.counts(stage)[:episodes]
            columns |= dict(zip(record["columns"], counts_em.T, strict=True))
    return columns


def _method_rows(
    counts: diagnostics.Counts, answered: Answered, options: Options, shot: Shot
) -> list[Row]:
    """One row a method, with its gain over the baseline where that was run."""
    asked = diagnostics.queries(counts, options.spec(shot))
    accuracy = {m.name: 100 * counts[m.name] / asked for m in options.methods}
    rows = []
    for method in options.methods:
        mean = statistics.mean(accuracy[method.name])
        row = {
            "method": method.name,
            "title": method.title,
            "transductive": method.transductive,
            "adapts": method.method.inputs == "images",
            "episodes": len(accuracy[method.name]),
            "accuracy": mean.mean,
            "ci95": mean.ci95,
            **answered.rows(method.name),
        }
        if foreign := options.distractor_queries:
            row |= unknown.row(counts, method.name, asked, foreign)
        if options.baseline in accuracy and method.name != options.baseline:
            gain = statistics.gain(accuracy[method.name], accuracy[options.baseline])
            row |= {
                "baseline": options.baseline,
                "gain": gain.mean,
                "gain_ci95": gain.ci95,
                "wins": gain.wins,
                "losses": gain.losses,
            }
        rows.append(row)
    return rows


def _averages(rows: list[Row]) -> list[Row]:
    """Means over the data sets, as the paper's last column."""
    keys = dict.fromkeys((row["shot"], row["method"], row["title"]) for row in rows)
    averages = []
    for shot, method, title in keys:
        own = [r for r in rows if (r["shot"], r["method"]) == (shot, method)]
        average = {
            "shot": shot,
            "method": method,
            "title": title,
            "datasets": len(own),
            "accuracy": float(np.mean([row["accuracy"] for row in own])),
        }
        for name in [name for name in ("auroc", "fpr95") if name in own[0]]:
            average[name] = float(np.mean([row[name] for row in own]))
        if "gain" in own[0]:
            gains = [(row["gain"], row["gain_ci95"]) for row in own]
            gain = statistics.average(gains, [row["episodes"] for row in own])
            average |= {
                "baseline": own[0]["baseline"],
                "gain": gain.mean,
                "gain_ci95": gain.ci95,
            }
        averages.append(average)
    return averages
