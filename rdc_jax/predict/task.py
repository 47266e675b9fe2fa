"""Distances of any number of queries to the classes and supports of one task.

RDC compares all rows of a task with each other, so its memory and time grow with the
square and the cube of their number. Thousands of queries are therefore answered in
batches, each with all supports. A hash of their features decides which queries share a
batch: a shuffle that depends neither on a seed nor on the order of files. Classes are
spread evenly over the batches, and the same pictures get the same answers.
"""

import contextlib
import functools
import hashlib
import logging
import threading
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.core.calibration import rdc
from rdc_jax.core.distances import cross_distances
from rdc_jax.core.params import RDCParams
from rdc_jax.core.prototypes import npc
from rdc_jax.core.rows import l2_normalize
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.threads import one_lapack_thread

_log = logging.getLogger(__name__)

_SMALLEST_BUCKET = 8
# Padded up to this many rows a task costs next to nothing more, and its subspace is
# found by iteration rather than by a full decomposition.
_LEAST_ROWS = 64
_PLAIN_BATCH = 1024  # only bounds the memory: each query is classified by itself


class Support(NamedTuple):
    """The labelled rows of a task; every class has one at least.

    Attributes:
      features: One row a support.
      labels: The class of each, an index into ``class_names``.
      class_names: One a class.
      images: Names of the supports.
      thumbnails: JPEG bytes of each, where they were asked for.
    """

    features: Float[np.ndarray, "s d"]
    labels: Int[np.ndarray, " s"]
    class_names: tuple[str, ...]
    images: tuple[str, ...] = ()
    thumbnails: tuple[bytes, ...] = ()


# Of queries to the classes, and to the supports.
Distances = tuple[Float[np.ndarray, "q c"], Float[np.ndarray, "q s"]]


def calibrated_distances(
    support: Support,
    query_qd: Float[np.ndarray, "q d"],
    params: RDCParams,
    batch_size: int,
) -> Distances:
    """Compare at most ``batch_size`` queries at a time with each other, by RDC.

    The order of the queries changes nothing, not even in the last digit.

    Raises:
      UserError: A feature is too large for float32.
    """
    largest = np.max([np.abs(x).max() for x in (support.features, query_qd)])
    if not largest <= np.finfo(np.float32).max:
        raise UserError(f"features go up to {largest:.3g}: give finite float32 numbers")
    with one_lapack_thread(), say_if_slow("compiling RDC for this number of pictures"):
        return _in_batches(support, query_qd, params, np.float32, batch_size)


def plain_distances(support: Support, query_qd: Float[np.ndarray, "q d"]) -> Distances:
    """Compare each query by itself with class means and supports, l2-normalised.

    In float64: the answer for a row is then the same, in every digit that counts,
    whatever rows are beside it.

    >>> support = Support(np.eye(2), np.array([0, 1]), ("ant", "bee"))
    >>> plain_distances(support, np.array([[5.0, 0.0]]))[0].round(3).tolist()
    [[0.0, 1.414]]
    """
    with jax.enable_x64(True):
        return _in_batches(support, query_qd, None, np.float64, _PLAIN_BATCH)


def content_order(feat_qd: Float[np.ndarray, "q d"]) -> Int[np.ndarray, " q"]:
    """Order rows by a hash of their content.

    >>> rows = np.array([[1.0], [2.0], [3.0]])
    >>> rows[content_order(rows)].tolist() == rows[[2, 0, 1]][
    ...     content_order(rows[[2, 0, 1]])
    ... ].tolist()
    True
    """
    rows = np.ascontiguousarray(feat_qd)
    digests = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    return np.array(sorted(range(len(rows)), key=digests.__getitem__), np.intp)


def bucket(n: int) -> int:
    """Round a size up to one of a few, so that few programs are compiled.

    Sizes are 8, 12, 16, 24, 32, 48, …: at most half of a row count is padding, a
    fifth on average.

    >>> [bucket(n) for n in (1, 9, 13, 25, 75, 200)]
    [8, 12, 16, 32, 96, 256]
    """
    size = _SMALLEST_BUCKET
    while size < n:
        size = size * 3 // 2 if size & (size - 1) == 0 else size // 3 * 4
    return size


@contextlib.contextmanager
def say_if_slow(message: str, seconds: float = 2.0) -> Iterator[None]:
    """Log a message where the work inside has not ended after a while."""
    timer = threading.Timer(seconds, _log.info, [f"{message} …"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _in_batches(
    support: Support,
    query_qd: Float[np.ndarray, "q d"],
    params: RDCParams | None,
    dtype: type[np.floating],
    batch_size: int,
) -> Distances:
    """Compare batches of nearly equal size, padded to one of a few shapes."""
    s, q, c = len(support.labels), len(query_qd), len(support.class_names)
    size_s = bucket(s)
    class_qc, support_qs = np.empty((q, c), dtype), np.empty((q, s), dtype)
    support_sd = _pad(support.features.astype(dtype), size_s)
    labels_s = _pad(support.labels.astype(np.int32), size_s)
    for batch in np.array_split(content_order(query_qd), -(-q // batch_size)):
        b = len(batch)
        size_q = max(bucket(b), _LEAST_ROWS - size_s)
        to_class, to_support = _program(
            support_sd,
            labels_s,
            np.arange(size_s) < s,
            _pad(query_qd[batch].astype(dtype), size_q),
            np.arange(size_q) < b,
            bucket(c),
            params,
        )
        class_qc[batch] = np.asarray(to_class)[:b, :c]
        support_qs[batch] = np.asarray(to_support)[:b, :s]
    return class_qc, support_qs


def _pad(rows: np.ndarray, size: int) -> np.ndarray:
    filler = np.zeros((size - len(rows), *rows.shape[1:]), rows.dtype)
    return np.concatenate([rows, filler])


@functools.partial(jax.jit, static_argnames="num_classes")
def _program(
    support_sd: Float[Array, "s d"],
    labels_s: Int[Array, " s"],
    mask_s: Bool[Array, " s"],
    query_qd: Float[Array, "q d"],
    mask_q: Bool[Array, " q"],
    num_classes: int,
    params: RDCParams | None,
) -> tuple[Float[Array, "q c"], Float[Array, "q s"]]:
    arguments = support_sd, labels_s, query_qd, num_classes
    if params is None:
        class_qc = npc(*arguments, support_mask=mask_s, query_mask=mask_q)
        rows = l2_normalize(query_qd), l2_normalize(support_sd)
        return class_qc, cross_distances(*rows)
    out = rdc(*arguments, params=params, support_mask=mask_s, query_mask=mask_q)
    s = support_sd.shape[0]
    return out.class_distances, out.distances[s:, :s]
