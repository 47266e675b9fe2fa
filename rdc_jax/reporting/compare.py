"""Two runs on the same tasks: what the methods that they share gain from A to B."""

import collections
import csv
import io
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from rdc_jax.core import statistics
from rdc_jax.core.statistics import plus_minus
from rdc_jax.reporting.runs import Run, read, verdict
from rdc_jax.runtime import checksums
from rdc_jax.runtime.arguments import Parser
from rdc_jax.runtime.config_values import Shot, shot
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.text import table

TASKS = "tasks.csv"

_COLUMNS = 4  # Data set, shot, task and queries; methods follow.
_DECIDING = (
    "seed",
    "way",
    "query",
    "dirichlet",
    "distractor_queries",
)  # With the data, on the tasks.
_CLEAR = {"helps": "B is better", "hurts": "A is better", "unclear": "not clear"}

# Accuracies of the tasks in percent, by data set, shot and method.
Accuracies = dict[tuple[str, Shot, str], Float[np.ndarray, " e"]]


def main(arguments: Sequence[str]) -> None:
    """Read the command line and print the comparison."""
    parser = Parser(
        prog="python -m rdc_jax.reporting compare",
        description="Compare two finished runs task by task, for each method, data "
        "set and shot that both have.",
    )
    parser.add_argument("a", help="work directory of one run")
    parser.add_argument("b", help="work directory of the other run")
    parser.add_argument(
        "--json", action="store_true", help="print JSON instead of a table"
    )
    flags = parser.parse(arguments)
    found = compare(flags.a, flags.b)
    print(json.dumps(found, indent=1) if flags.json else text(found))


def compare(a: str | pathlib.Path, b: str | pathlib.Path) -> dict[str, Any]:
    """Compare two runs task by task.

    Args:
      a: Work directory of a finished run.
      b: Of another one, on the same tasks. It may have other methods, weights or
        parameters, and more or fewer tasks: the first ones of both are compared.

    Returns:
      ``a`` and ``b`` name the runs. ``rows`` have the mean accuracies of both, their
      ``difference`` (b minus a), its interval ``ci95``, and in how many tasks b was
      better and worse, for each ``dataset``, ``shot`` and ``method``. ``averages`` have
      the mean difference over the data sets.

    Raises:
      UserError: The runs have other tasks, or nothing in common.
    """
    folders = pathlib.Path(a), pathlib.Path(b)
    runs = read(folders[0]), read(folders[1])
    _check_same_tasks(*runs, folders)
    one, other = (read_tasks(*each) for each in zip(runs, folders, strict=True))
    rows = [_row(key, one[key], other[key]) for key in one if key in other]
    if not rows:
        raise UserError(
            "the runs have no data set, shot and method in common: "
            + "; ".join(
                f"{folder} has {', '.join(run.datasets)} in "
                f"{', '.join(f'{shot}-shot' for shot in run.shots)} by "
                f"{', '.join(run.titles)}"
                for run, folder in zip(runs, folders, strict=True)
            )
        )
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["shot"], row["method"]].append(row)
    return {
        "a": _named(runs[0], folders[0]),
        "b": _named(runs[1], folders[1]),
        "rows": rows,
        "averages": [_average(group) for group in groups.values()],
    }


def read_tasks(run: Run, workdir: pathlib.Path) -> Accuracies:
    """Read the accuracies of single tasks.

    Raises:
      UserError: They are missing, damaged, or not those of the run's results.
    """
    path, again = workdir / TASKS, "run the same run_eval.py command again"
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}; {again}") from error
    if checksums.of_json(content) != run.results.get("tasks"):
        raise UserError(f"{path} is not of these results, or damaged: {again}")
    accuracies = collections.defaultdict(list)
    for line in csv.DictReader(io.StringIO(content)):
        for method in [*line][_COLUMNS:]:
            accuracy = 100 * int(line[method]) / int(line["queries"])
            accuracies[line["dataset"], shot(line["shot"]), method].append(accuracy)
    return {key: np.array(values) for key, values in accuracies.items()}


def text(found: dict[str, Any]) -> str:
    """Write a comparison as a table for terminals."""
    lines = [["shot", "data set", "method", "tasks", "A", "B", "B - A", ""]]
    for row in found["rows"]:
        start = [f"{row['shot']}", row["dataset"], row["method"], f"{row['tasks']:,}"]
        means = [f"{row[run]:.2f}" for run in ("a", "b")]
        lines.append([*start, *means, *_told(row)])
    for row in found["averages"] if len(found["rows"]) > 1 else ():
        start = [f"{row['shot']}", "average", row["method"], "", "", ""]
        lines.append([*start, *_told(row)])
    head = [f"{name.upper()}: {found[name]}" for name in ("a", "b")]
    note = "Accuracy in percent; B - A in points ± 95% interval, on the same tasks."
    return "\n".join([*head, note, "", table(lines, right=frozenset({3, 4, 5, 6}))])


def _check_same_tasks(a: Run, b: Run, folders: tuple[pathlib.Path, ...]) -> None:
    """Refuse runs whose tasks differ in anything but their number."""
    common = [name for name in a.datasets if name in b.datasets]
    values = [
        {f"config.{name}": run.config.get(name, 0) for name in _DECIDING}
        | {f"the content of {x}": run.provenance["data"].get(x) for x in common}
        for run in (a, b)
    ]
    for name, value in values[0].items():
        if (other := values[1][name]) != value:
            raise UserError(
                f"the runs have different tasks: {name} is {value} in {folders[0]} and "
                f"{other} in {folders[1]}"
            )


def _named(run: Run, folder: pathlib.Path) -> str:
    checkpoint = run.provenance["checkpoint"]
    weights = f"{checkpoint['arch']} {checkpoint['fingerprint'][:12]}"
    return f"{folder.resolve().name}, {run.title}, {weights}"


def _row(
    key: tuple[str, Shot, str],
    a_e: Float[np.ndarray, " e"],
    b_e: Float[np.ndarray, " f"],
) -> dict[str, Any]:
    tasks = min(len(a_e), len(b_e))
    a_e, b_e = a_e[:tasks], b_e[:tasks]
    gain = statistics.gain(b_e, a_e)
    return {
        **dict(zip(("dataset", "shot", "method"), key, strict=True)),
        "tasks": tasks,
        "a": statistics.mean(a_e).mean,
        "b": statistics.mean(b_e).mean,
        "difference": gain.mean,
        "ci95": gain.ci95,
        "better": gain.wins,
        "worse": gain.losses,
    }


def _average(rows: list[dict[str, Any]]) -> dict[str, Any]:
    differences = [(row["difference"], row["ci95"]) for row in rows]
    mean, ci95 = statistics.average(differences, [row["tasks"] for row in rows])
    common = {name: rows[0][name] for name in ("shot", "method")}
    return {**common, "datasets": len(rows), "difference": mean, "ci95": ci95}


def _told(row: dict[str, Any]) -> list[str]:
    difference, ci95 = row["difference"], row["ci95"]
    clear = _CLEAR[verdict(difference, ci95)]
    return [f"{difference:+.2f}{plus_minus(ci95)}", clear]
