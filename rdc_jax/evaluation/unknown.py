"""How well class distances tell queries of none of a task's classes from the others.

AUROC is the share of pairs, of a query of no class and a query of some class, in which
the first has the larger score; chance is one half. FPR@95 is the share of the queries
of no class that pass for known ones where 95% of the known ones do.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdc_jax.core import statistics
from rdc_jax.core.prototypes import unknown_scores
from rdc_jax.evaluation.diagnostics import Counts

_PARTS = ("pairs", "passed")  # Pairs in order, ties as halves; queries that pass.


def columns(name: str) -> tuple[str, ...]:
    """What the ledger calls the counts of a method."""
    return tuple(f"{name}:{part}" for part in _PARTS)


def count(
    dist_qc: Float[Array, "q c"], labels_q: Int[Array, " q"]
) -> list[Int[Array, ""]]:
    """Count pairs of queries in order, twice, and queries of no class that pass.

    Args:
      dist_qc: Class distances of one task.
      labels_q: Classes of the queries; -1 is none, and what is below is padding.
    """
    score_q = unknown_scores(dist_qc)
    known_q, foreign_q = labels_q >= 0, labels_q == -1
    pair_qq = foreign_q[:, None] & known_q[None, :]
    above_qq = (score_q[:, None] > score_q[None, :]).astype(jnp.int32)
    equal_qq = (score_q[:, None] == score_q[None, :]).astype(jnp.int32)
    pairs = jnp.where(pair_qq, 2 * above_qq + equal_qq, 0).sum()
    # The smallest score that 95% of the known ones do not exceed, in whole numbers.
    place = (19 * known_q.sum() + 19) // 20 - 1
    threshold = jnp.sort(jnp.where(known_q, score_q, jnp.inf))[place]
    return [pairs, (foreign_q & (score_q <= threshold)).sum()]


def row(
    counts: Counts, name: str, known: Int[np.ndarray, " e"] | int, foreign: int
) -> dict[str, Any]:
    """Give AUROC and FPR@95 of a method in percent, means over tasks.

    In a task, queries of some class are ``known``, those of none ``foreign``.
    """
    pairs, passed = (counts[column] for column in columns(name))
    auroc = statistics.mean(100 * pairs / (2 * known * foreign))
    fpr95 = statistics.mean(100 * passed / foreign)
    return {
        "auroc": auroc.mean,
        "auroc_ci95": auroc.ci95,
        "fpr95": fpr95.mean,
        "fpr95_ci95": fpr95.ci95,
    }
