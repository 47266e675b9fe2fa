"""Calibrated distances of any number of queries, by a few compiled programs."""

import functools
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.core.calibration import rdc
from rdc_jax.core.params import RDCParams
from rdc_jax.predict.batches import bucket, content_order, even_batches, pad_rows
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.threads import one_lapack_thread

# Padded up to here a task costs next to nothing more, and its subspace is found by
# iteration rather than by a full decomposition.
_LEAST_ROWS = 64


class Support(NamedTuple):
    """The labelled rows of a task.

    Attributes:
      features: One row a support.
      labels: Its class, 0 … c-1; every class has a support.
      num_classes: c.
    """

    features: Float[np.ndarray, "s d"]
    labels: Int[np.ndarray, " s"]
    num_classes: int


class Distances(NamedTuple):
    """Distances of each query, to the classes and to the supports."""

    classes: Float[np.ndarray, "q c"]
    supports: Float[np.ndarray, "q s"]


def calibrated(
    support: Support,
    query_qd: Float[np.ndarray, "q d"],
    params: RDCParams,
    batch_size: int,
) -> Distances:
    """Compare queries with classes and supports by RDC.

    The order of the queries changes nothing, not even in the last digit.

    Args:
      support: The labelled rows.
      query_qd: The queries.
      params: Of RDC.
      batch_size: Queries that make up a task together, at most.

    Returns:
      Calibrated distances.

    Raises:
      UserError: A feature is too large for float32.
    """
    largest = np.max([np.abs(x).max() for x in (support.features, query_qd)])
    if not largest <= np.finfo(np.float32).max:
        raise UserError(f"features go up to {largest:.3g}: give finite float32 numbers")
    class_qc = np.empty((len(query_qd), support.num_classes), np.float32)
    support_qs = np.empty((len(query_qd), len(support.labels)), np.float32)
    with one_lapack_thread():
        for batch in even_batches(content_order(query_qd), batch_size):
            class_qc[batch], support_qs[batch] = _one_batch(
                support, query_qd[batch], params
            )
    return Distances(class_qc, support_qs)


def _one_batch(
    support: Support, query_qd: np.ndarray, params: RDCParams
) -> tuple[np.ndarray, np.ndarray]:
    """Pad, run, and cut the padding off."""
    s, q = len(support.labels), len(query_qd)
    rows_s = bucket(s)
    rows_q = max(bucket(q), _LEAST_ROWS - rows_s)
    class_qc, support_qs = _rdc(
        pad_rows(support.features.astype(np.float32), rows_s),
        pad_rows(support.labels.astype(np.int32), rows_s),
        np.arange(rows_s) < s,
        pad_rows(query_qd.astype(np.float32), rows_q),
        np.arange(rows_q) < q,
        params,
        bucket(support.num_classes),
    )
    return np.asarray(class_qc)[:q, : support.num_classes], np.asarray(support_qs)[
        :q, :s
    ]


@functools.partial(jax.jit, static_argnums=6)
def _rdc(
    support_sd: Float[Array, "s d"],
    labels_s: Int[Array, " s"],
    mask_s: Bool[Array, " s"],
    query_qd: Float[Array, "q d"],
    mask_q: Bool[Array, " q"],
    params: RDCParams,
    num_classes: int,
) -> tuple[Float[Array, "q c"], Float[Array, "q s"]]:
    out = rdc(
        support_sd,
        labels_s,
        query_qd,
        num_classes,
        params=params,
        support_mask=mask_s,
        query_mask=mask_q,
    )
    s = support_sd.shape[0]
    return out.class_distances, out.distances[s:, :s]
