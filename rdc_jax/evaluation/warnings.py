"""What is wrong with a run, in plain words: one line a fault, with its data sets."""

from collections.abc import Mapping, Sequence
from typing import Any

from rdc_jax.core.statistics import beyond_chance, plus_minus
from rdc_jax.data.task_spec import span
from rdc_jax.evaluation.options import Options
from rdc_jax.runtime.config_values import Shot

Row = dict[str, Any]

# Points of purity that expansion may cost, and the share of pairs that the Jaccard
# distance may leave undecided, before a warning.
_PURITY_LOSS = 5.0
_UNDECIDED = 95.0


def collect(
    options: Options,
    shot: Shot,
    *,
    rows: Sequence[Row],
    neighbours: Sequence[Row],
    curves: Sequence[Row],
) -> list[str]:
    """Find what is wrong in one shot.

    Args:
      options: The typed config of the run.
      shot: Labelled images a class.
      rows: Those of ``results.json`` in this shot, as the other parts.
      neighbours: One for each data set, where there are neighbour sets.
      curves: One for each data set, method and recorded step of fine-tuning.

    Returns:
      Sentences that begin with the shot.
    """
    calibrates = any(method.uses_neighbours for method in options.methods)
    lines = _large_k(options, shot) if calibrates else []
    lines += _neighbour_sets(neighbours) + _losses(rows, options) + _falls(curves)
    return [f"{shot}-shot: {line}" for line in lines]


def _large_k(options: Options, shot: Shot) -> list[str]:
    spec = options.spec(shot)
    k, others = options.rdc.k, spec.most_shots + span(spec.query)[1] - 1
    if k <= others:
        return []
    return [
        f"k={k}, but an image has only {others} others of its class in a task: "
        "neighbour sets must mix classes; lower --config.rdc.k"
    ]


def _neighbour_sets(rows: Sequence[Row]) -> list[str]:
    empty, impure, undecided = {}, {}, {}
    for row in rows:
        before, after = row["purity_before"], row["purity_after"]
        if before is None or after is None:
            empty[row["dataset"]] = ""
        elif after < before - _PURITY_LOSS:
            impure[row["dataset"]] = f"{before:.0f}% to {after:.0f}%"
        if row["jaccard_one"] > _UNDECIDED:
            undecided[row["dataset"]] = f"{row['jaccard_one']:.0f}%"
    lines = []
    if empty:
        lines.append(
            f"no query of {_listed(empty)} has a neighbour; raise --config.rdc.k"
        )
    if impure:
        lines.append(
            f"expansion lowers the purity of neighbour sets of {_listed(impure)}: it "
            "adds images of other classes; a smaller --config.rdc.k adds fewer"
        )
    if undecided and not empty:
        lines.append(
            "nearly all query-support pairs share no neighbour in tasks of "
            f"{_listed(undecided)}: calibration can hardly rank them; a larger "
            "--config.rdc.k may help"
        )
    return lines


def _losses(rows: Sequence[Row], options: Options) -> list[str]:
    """Transductive methods that lose to the baseline, which sees less than they do."""
    titles = {row["method"]: row["title"] for row in rows}
    losses: dict[str, dict[str, str]] = {}
    for row in rows:
        gain, ci95 = row.get("gain", 0), row.get("gain_ci95")
        if row["transductive"] and gain < 0 and beyond_chance(gain, ci95):
            points = f"{-gain:.2f}{plus_minus(ci95)} points"
            losses.setdefault(row["method"], {})[row["dataset"]] = points
    return [
        f"{titles[method]} loses to {titles[options.baseline]} on the same tasks of "
        f"{_listed(found)}: do not use it there"
        for method, found in losses.items()
    ]


def _falls(rows: Sequence[Row]) -> list[str]:
    """Methods that were better before their last step."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row["title"], row["dataset"]
        best[key] = max(best.get(key, row), row, key=lambda row: row["accuracy"])
    falls: dict[str, dict[str, str]] = {}
    for (title, dataset), row in best.items():
        if beyond_chance(row["ahead"], row["ahead_ci95"]):
            points = f"{row['ahead']:.2f}{plus_minus(row['ahead_ci95'])} points"
            falls.setdefault(title, {})[dataset] = f"{points} after step {row['step']}"
    return [
        f"{title} was better before its last step on {_listed(found)}: fewer "
        "--config.finetune.steps or a lower --config.finetune.learning_rate"
        for title, found in falls.items()
    ]


def _listed(found: Mapping[str, str]) -> str:
    """Write data sets with an amount each.

    >>> _listed({"cub": "80% to 60%", "isic": ""})
    'cub (80% to 60%), isic'
    """
    return ", ".join(
        f"{name} ({text})" if text else name for name, text in found.items()
    )
