"""Why a method helps or hurts: neighbour sets, hubs, and the steps of fine-tuning.

RDC trusts that neighbours share a class. Here the labels of queries, which no method
sees, tell how far that holds: the purity of a query's neighbour set is the share of its
members, the query itself left out, that are of the query's class. Queries of none of
the task's classes have no set that counts, and are impure members of others.

Hubs are images that are among the k nearest of many others; they make neighbours tell
less. With N the number of images that have one among theirs, whose mean is k, a hub has
N of 2k or more, an anti-hub 0; the skewness of N grows with both.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.core import statistics
from rdc_jax.core.neighbours import rank_positions
from rdc_jax.core.params import RDCParams
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.evaluation.options import Options
from rdc_jax.methods import Task
from rdc_jax.methods.adapt import Adaptation
from rdc_jax.methods.base import row_mask
from rdc_jax.methods.rdc import calibrated
from rdc_jax.runtime.config_values import Shot

# Counts over the queries of an episode, in the original space.
COLUMNS = (
    "members_before",  # of the sets R(i, k), before their expansion
    "same_before",  # of these, of the query's class
    "members_after",  # of the expanded sets
    "same_after",
    "jaccard_one",  # query-support pairs of Jaccard distance 1
    "skewness",  # of how often images are neighbours, in thousandths
    "hubs",
    "anti_hubs",
)

# Counted as well where tasks differ in size.
SIZES = ("queries", "supports")

_EDGES = (0, 30, 50, 70, 100)  # Percent; of five classes, chance is about 20.
_LEAST = 2  # Tasks that an interval needs.

# The ledger's columns of a data set and shot.
Counts = Mapping[str, Int[np.ndarray, "e"]]


def count(
    task: Task, labels_q: Int[Array, " q"], params: RDCParams
) -> list[Int[Array, ""]]:
    """Count the members of the neighbour sets of one task, see ``COLUMNS``.

    The sets and the Jaccard distances are those that RDC computes in the original
    space; compiled together with it, they are not computed twice.
    """
    labels_n = jnp.concatenate([task.support_labels, labels_q])
    n, s = len(labels_n), len(task.support_labels)
    # With lam = 0 the calibrated distance is the Jaccard distance alone.
    alone = dataclasses.replace(params, lam=0.0, subspace="none")
    out = calibrated(task, alone)
    rows_nd = jnp.concatenate([task.support, task.query])
    valid_n = jnp.isfinite(rows_nd).all(axis=1)
    if (mask_n := row_mask(task)) is not None:
        valid_n &= mask_n
    near_nn = rank_positions(out.original, valid_n, params.k + 1) < params.k + 1
    base_nn = near_nn & near_nn.T if params.base == "reciprocal" else near_nn
    other_nn = ~jnp.eye(n, dtype=bool)
    same_nn = labels_n[:, None] == labels_n[None, :]
    known_q1 = (labels_q >= 0)[:, None]
    counts = []
    for sets_nn in (base_nn & other_nn, out.neighbours & other_nn):
        sets_qn = sets_nn[s:] & known_q1
        counts += [sets_qn.sum(), (sets_qn & same_nn[s:]).sum()]
    undecided_qs = (out.distances[s:, :s] == 1) & known_q1
    return [*counts, undecided_qs.sum(), *_hubs(near_nn & other_nn, valid_n, params.k)]


def _hubs(
    near_nn: Bool[Array, "n n"], valid_n: Bool[Array, " n"], k: int
) -> list[Int[Array, ""]]:
    """Count hubs and anti-hubs by the k nearest of each image."""
    times_n = (near_nn & valid_n[:, None]).sum(axis=0)
    count = jnp.maximum(valid_n.sum(), 1)
    apart_n = jnp.where(valid_n, times_n - times_n.sum() / count, 0)
    second, third = ((apart_n**power).sum() / count for power in (2, 3))
    second = jnp.maximum(second, jnp.finfo(second.dtype).tiny)
    # By a root, which is rounded in one way: a power may depend on the chunk.
    skewness = third / (second * jnp.sqrt(second))
    return [
        jnp.round(1000 * skewness).astype(jnp.int32),
        (valid_n & (times_n >= 2 * k)).sum(),
        (valid_n & (times_n == 0)).sum(),
    ]


def sizes(task: Task, labels_q: Int[Array, " q"]) -> list[Int[Array, ""]]:
    """Count the images of a task that is filled up, see ``SIZES``."""
    return [(labels_q >= 0).sum(), task.support_mask.sum()]


def queries(counts: Counts, spec: TaskSpec) -> Int[np.ndarray, "e"] | int:
    """How many queries of their classes tasks have."""
    return counts.get("queries", spec.query_size)


def neighbour_sets(
    counts: Counts, spec: TaskSpec, foreign: int = 0
) -> dict[str, float | None]:
    """Turn the counts of a data set and shot into shares in percent and means.

    ``foreign`` queries of a task are of none of its classes.

    Returns:
      ``purity_before`` and ``purity_after`` expansion (None where no query has
      neighbours), ``neighbours_before`` and ``neighbours_after`` for a query,
      ``jaccard_one``: query-support pairs that share no neighbour; ``hub_skewness``,
      the mean over tasks, ``hubs`` and ``anti_hubs``, shares of all images.
    """
    total = {name: int(counts[name].sum()) for name in COLUMNS}
    tasks = len(counts[COLUMNS[0]])
    size_e = np.broadcast_to(queries(counts, spec), tasks)
    support_e = np.broadcast_to(counts.get("supports", spec.support_size), tasks)
    asked, pairs = int(size_e.sum()), int((size_e * support_e).sum())
    images = asked + int(support_e.sum()) + tasks * foreign

    def purity(when: str) -> float | None:
        members = total[f"members_{when}"]
        return 100 * total[f"same_{when}"] / members if members else None

    return {
        "purity_before": purity("before"),
        "purity_after": purity("after"),
        "neighbours_before": total["members_before"] / asked,
        "neighbours_after": total["members_after"] / asked,
        "jaccard_one": 100 * total["jaccard_one"] / pairs,
        "hub_skewness": float(counts["skewness"].mean()) / 1000,
        "hubs": 100 * total["hubs"] / images,
        "anti_hubs": 100 * total["anti_hubs"] / images,
    }


def gains_by_purity(
    counts: Sequence[Counts], options: Options, shot: Shot
) -> list[dict[str, Any]]:
    """Make the rows ``purity`` of ``results.json``.

    Tasks of all data sets are taken together, for purity varies within each of them.

    ``counts`` are by data set, with ``COLUMNS``.

    Returns:
      For each range of purity after expansion and each transductive method: its gain
      over the baseline on the tasks in that range.
    """
    if not counts or options.baseline not in counts[0]:
        return []
    spec = options.spec(shot)
    purity_t = np.concatenate([_purity(each) for each in counts])

    def accuracy(name: str) -> Float[np.ndarray, "t"]:
        return 100 * np.concatenate([c[name] / queries(c, spec) for c in counts])

    base_t = accuracy(options.baseline)
    rows: list[dict[str, Any]] = []
    for low, high in itertools.pairwise(_EDGES):
        inside_t = (purity_t >= low) & (purity_t < high + (high == _EDGES[-1]))
        if (tasks := int(inside_t.sum())) < _LEAST:
            continue
        for method in options.methods:
            if method.transductive and method.name != options.baseline:
                own_t = accuracy(method.name)
                gain = statistics.gain(own_t[inside_t], base_t[inside_t])
                rows.append(
                    {
                        "shot": shot,
                        "from": low,
                        "to": high,
                        "method": method.name,
                        "title": method.title,
                        "episodes": tasks,
                        "gain": gain.mean,
                        "gain_ci95": gain.ci95,
                    }
                )
    return rows


def _purity(counts: Counts) -> Float[np.ndarray, "e"]:
    """In percent, after expansion; NaN, which is in no range, without neighbours."""
    members_e = counts["members_after"].astype(np.float64)
    members_e[members_e == 0] = np.nan
    return 100 * counts["same_after"] / members_e


def accuracy_by_step(
    counts: Counts, options: Options, shot: Shot
) -> list[dict[str, Any]]:
    """Read accuracies along fine-tuning from the columns ``method@step``.

    Returns:
      For each recorded step and the last one: ``method``, ``title``, ``step``,
      ``accuracy`` and ``ci95``; and how many points it is ``ahead`` of the last step on
      the same tasks, with ``ahead_ci95``.
    """
    asked = queries(counts, options.spec(shot))
    rows = []
    for entry in options.methods:
        if not (isinstance(entry.method, Adaptation) and entry.method.recorded):
            continue
        names = {step: f"{entry.name}@{step}" for step in entry.method.recorded}
        names[sum(phase.steps for phase in entry.method.phases)] = entry.name
        last_e = 100 * counts[entry.name] / asked
        for step, name in names.items():
            accuracy_e = 100 * counts[name] / asked
            mean, ci95 = statistics.mean(accuracy_e)
            ahead = statistics.gain(accuracy_e, last_e)
            rows.append(
                {
                    "method": entry.name,
                    "title": entry.title,
                    "step": step,
                    "accuracy": mean,
                    "ci95": ci95,
                    "ahead": ahead.mean,
                    "ahead_ci95": ahead.ci95,
                }
            )
    return rows
