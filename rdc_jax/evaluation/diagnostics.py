"""Did calibration help, and if not, why?

RDC trusts that neighbours share a class. Here the labels of queries, which no method
sees, tell how far that holds: the purity of a query's neighbour set is the share of its
members, the query itself left out, that are of the query's class.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from rdc_jax.core.neighbours import rank_positions
from rdc_jax.core.params import RDCParams
from rdc_jax.core.statistics import beyond_chance, plus_minus
from rdc_jax.methods import Task
from rdc_jax.methods.rdc import calibrated

# Counts over the queries of an episode, in the original space.
COLUMNS = (
    "members_before",  # of the sets R(i, k), before their expansion
    "same_before",  # of these, of the query's class
    "members_after",  # of the expanded sets
    "same_after",
    "jaccard_one",  # query-support pairs of Jaccard distance 1
)

# Points of purity that expansion may cost, and the share of pairs that the Jaccard
# distance may leave undecided, before a warning.
_PURITY_LOSS = 5.0
_UNDECIDED = 95.0


def count(
    task: Task, labels_q: Int[Array, " q"], params: RDCParams
) -> list[Int[Array, ""]]:
    """Count the members of the neighbour sets of one task, see ``COLUMNS``.

    The sets and the Jaccard distances are those that RDC computes in the original
    space; compiled together with it, they are not computed twice.

    Args:
      task: Its features.
      labels_q: Classes of the queries.
      params: Of RDC.
    """
    labels_n = jnp.concatenate([task.support_labels, labels_q])
    n, s = len(labels_n), len(task.support_labels)
    # With lam = 0 the calibrated distance is the Jaccard distance alone.
    alone = dataclasses.replace(params, lam=0.0, subspace="none")
    out = calibrated(task, alone)
    rows_nd = jnp.concatenate([task.support, task.query])
    valid_n = jnp.isfinite(rows_nd).all(axis=1)
    near_nn = rank_positions(out.original, valid_n, params.k + 1) < params.k + 1
    base_nn = near_nn & near_nn.T if params.base == "reciprocal" else near_nn
    other_nn = ~jnp.eye(n, dtype=bool)
    same_nn = labels_n[:, None] == labels_n[None, :]
    counts = []
    for sets_nn in (base_nn & other_nn, out.neighbours & other_nn):
        counts += [sets_nn[s:].sum(), (sets_nn & same_nn)[s:].sum()]
    return [*counts, (out.distances[s:, :s] == 1).sum()]


def summarise(
    totals: Mapping[str, int], *, queries: int, pairs: int
) -> dict[str, float | None]:
    """Turn counts over many episodes into shares in percent and means.

    Args:
      totals: Sums of the columns.
      queries: Queries they are sums over.
      pairs: Query-support pairs they are sums over.

    Returns:
      ``purity_before`` and ``purity_after`` expansion (None where no query has
      neighbours), ``neighbours_before`` and ``neighbours_after`` for a query,
      ``jaccard_one``: query-support pairs that share no neighbour.
    """
    total = {name: int(totals[name]) for name in COLUMNS}

    def purity(when: str) -> float | None:
        members = total[f"members_{when}"]
        return 100 * total[f"same_{when}"] / members if members else None

    return {
        "purity_before": purity("before"),
        "purity_after": purity("after"),
        "neighbours_before": total["members_before"] / queries,
        "neighbours_after": total["members_after"] / queries,
        "jaccard_one": 100 * total["jaccard_one"] / pairs,
    }


def task_warnings(params: RDCParams, shot: int, query: int) -> list[str]:
    """Say in plain words what cannot work with tasks of this shape.

    >>> task_warnings(RDCParams(k=10), shot=1, query=15)
    []
    """
    others = shot + query - 1
    if params.k <= others:
        return []
    return [
        f"k={params.k}, but in a {shot}-shot task an image has only {others} others of "
        "its class: neighbour sets must mix classes; lower --config.rdc.k"
    ]


def set_warnings(where: str, summary: Mapping[str, float | None]) -> list[str]:
    """Say in plain words what is wrong with the neighbour sets.

    Args:
      where: Data set and shot.
      summary: Of ``summarise``.
    """
    found = []
    before, after = summary["purity_before"], summary["purity_after"]
    if before is None or after is None:
        return [f"{where}: no query has a neighbour; raise --config.rdc.k"]
    if after < before - _PURITY_LOSS:
        found.append(
            f"{where}: expansion lowers the purity of neighbour sets from "
            f"{before:.0f}% to {after:.0f}%: it adds images of other classes; a "
            "smaller --config.rdc.k adds fewer"
        )
    undecided = summary["jaccard_one"]
    if undecided is not None and undecided > _UNDECIDED:
        found.append(
            f"{where}: {undecided:.0f}% of query-support pairs share no neighbour, so "
            "calibration can hardly rank them; a larger --config.rdc.k may help"
        )
    return found


def gain_warnings(rows: list[dict[str, Any]], baseline: str) -> list[str]:
    """Name the transductive methods that lose to the baseline by more than chance.

    They are told more than a baseline that looks at one query at a time.

    Args:
      rows: Of ``results.json``.
      baseline: Name of the method they are compared with.
    """
    return [
        f"{row['dataset']} {row['shot']}-shot: {row['method']} loses {-row['gain']:.2f}"
        f"{plus_minus(row['gain_ci95'])} points to {baseline} on the same tasks: "
        "do not use it there"
        for row in rows
        if row["transductive"]
        and row.get("gain", 0) < 0
        and beyond_chance(row["gain"], row["gain_ci95"])
    ]
