"""Gains by the purity of a task's neighbours: where calibration can be trusted.

Tasks of all data sets are taken together, for purity varies within each of them.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rdc_jax.core import statistics
from rdc_jax.evaluation.options import Options

_EDGES = (0, 30, 50, 70, 100)  # Percent; of five classes, chance is about 20.
_LEAST = 2  # Tasks that an interval needs.

Counts = Mapping[str, Int[np.ndarray, "e"]]


def collect(
    counts: Sequence[Counts], options: Options, shot: int
) -> list[dict[str, Any]]:
    """Make the rows ``purity`` of ``results.json``.

    Args:
      counts: By data set: the ledger's columns, with those of the diagnostics.
      options: Of the run.
      shot: Labelled images a class.

    Returns:
      For each range of purity and each method that looks at all queries: the gain over
      the baseline on the tasks in that range.
    """
    methods = [
        method
        for method in options.methods
        if method.transductive and method.name != options.baseline
    ]
    if not counts or options.baseline not in counts[0]:
        return []
    queries = options.spec(shot).query_size
    purity_t = np.concatenate([_purity(each) for each in counts])

    def accuracy(name: str) -> Float[np.ndarray, "t"]:
        return 100 * np.concatenate([each[name] for each in counts]) / queries

    base_t = accuracy(options.baseline)
    accuracies = {method: accuracy(method.name) for method in methods}
    rows: list[dict[str, Any]] = []
    for low, high in itertools.pairwise(_EDGES):
        inside_t = (purity_t >= low) & (purity_t < high + (high == _EDGES[-1]))
        if inside_t.sum() < _LEAST:
            continue
        for method, own_t in accuracies.items():
            found = statistics.gain(own_t[inside_t], base_t[inside_t])
            rows.append(
                {
                    "shot": shot,
                    "from": low,
                    "to": high,
                    "method": method.name,
                    "title": method.title,
                    "episodes": int(inside_t.sum()),
                    "gain": found.mean,
                    "gain_ci95": found.ci95,
                }
            )
    return rows


def _purity(counts: Counts) -> Float[np.ndarray, "e"]:
    """In percent, after expansion; NaN, which is in no range, without neighbours."""
    members_e = counts["members_after"].astype(np.float64)
    members_e[members_e == 0] = np.nan
    return 100 * counts["same_after"] / members_e
