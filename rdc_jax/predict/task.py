"""Distances of any number of queries to the classes and supports of one task.

A transductive method compares all rows of a task with each other, so its memory and
time grow with the square and the cube of their number. Thousands of queries are
therefore answered in batches, each with all supports. A hash of their features decides
which queries share a batch: a shuffle that depends neither on a seed nor on the order
of files. Classes are spread evenly over the batches, and the same pictures get the same
answers.
"""

import functools
import hashlib
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Float64, Int

from rdc_jax.methods import FeatureMethod, Method, Task, get_method
from rdc_jax.runtime.compiled import say_if_slow
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.threads import one_lapack_thread

# Arrays are padded to a few sizes, so that another folder needs no other program. These
# are the least: padding to them costs next to nothing, and most tasks need no more.
_SUPPORTS, _QUERIES, _CLASSES = 16, 64, 8
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


def compared_distances(
    support: Support,
    query_qd: Float[np.ndarray, "q d"],
    method: FeatureMethod,
    batch_size: int,
) -> Float[np.ndarray, "q c"]:
    """Compare at most ``batch_size`` queries at a time with each other, by a method.

    The order of the queries changes nothing, not even in the last digit.

    Raises:
      UserError: A feature is too large for float32.
    """
    largest = np.max([np.abs(x).max() for x in (support.features, query_qd)])
    if not largest <= np.finfo(np.float32).max:
        raise UserError(f"features go up to {largest:.3g}: give finite float32 numbers")
    slow = f"compiling {method.title} for this number of pictures"
    with one_lapack_thread(), say_if_slow(slow):
        return _in_batches(support, query_qd, method, np.float32, batch_size)


def plain_distances(
    support: Support, query_qd: Float[np.ndarray, "q d"]
) -> Float[np.ndarray, "q c"]:
    """Compare each query by itself with class means, l2-normalised.

    In float64: the answer for a row is then the same, in every digit that counts,
    whatever rows are beside it.

    >>> support = Support(np.eye(2), np.array([0, 1]), ("ant", "bee"))
    >>> plain_distances(support, np.array([[5.0, 0.0]])).round(3).tolist()
    [[0.0, 1.414]]
    """
    with jax.enable_x64(True):
        plain = get_method("npc_l2")
        return _in_batches(support, query_qd, plain, np.float64, _PLAIN_BATCH)


def content_order(feat_qd: Float[np.ndarray, "q d"]) -> Int[np.ndarray, " q"]:
    """Order rows by a hash of their content."""
    rows = np.ascontiguousarray(feat_qd)
    digests = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    return np.array(sorted(range(len(rows)), key=digests.__getitem__), np.intp)


def bucket(n: int, least: int) -> int:
    """Round a size up to one of a few: 1, 1.5, 2, 3, 4, 6, … times the least.

    >>> [bucket(n, least=16) for n in (1, 17, 25, 75, 200)]
    [16, 24, 32, 96, 256]
    """
    size = least
    while size < n:
        size = size * 3 // 2 if size & (size - 1) == 0 else size // 3 * 4
    return size


def unit_rows(feat_nd: Float[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
    """Rows of length one, of finite features of any size; zero rows stay zero."""
    feat_nd = np.asarray(feat_nd, np.float64)
    tiny = np.finfo(np.float64).tiny
    # First by the largest entry, so that squares stay among the floats.
    feat_nd = feat_nd / np.maximum(np.abs(feat_nd).max(axis=1, keepdims=True), tiny)
    return feat_nd / np.maximum(np.linalg.norm(feat_nd, axis=1, keepdims=True), tiny)


def _in_batches(
    support: Support,
    query_qd: Float[np.ndarray, "q d"],
    method: Method,
    dtype: type[np.floating],
    batch_size: int,
) -> Float[np.ndarray, "q c"]:
    """Compare batches of nearly equal size, padded to one of a few shapes."""
    q, c = len(query_qd), len(support.class_names)
    class_qc = np.empty((q, c), dtype)
    support_sd, mask_s = _padded(support.features.astype(dtype), _SUPPORTS)
    labels_s, _ = _padded(support.labels.astype(np.int32), _SUPPORTS)
    for batch in np.array_split(content_order(query_qd), -(-q // batch_size)):
        rows_qd, mask_q = _padded(query_qd[batch].astype(dtype), _QUERIES)
        task = Task(
            *(support_sd, labels_s, rows_qd),
            num_classes=bucket(c, _CLASSES),
            support_mask=mask_s,
            query_mask=mask_q,
        )
        class_qc[batch] = np.asarray(_program(task, method))[: len(batch), :c]
    return class_qc


def _padded(rows: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with zeros after them, and a mask of those that are real."""
    size = bucket(len(rows), least)
    filler = np.zeros((size - len(rows), *rows.shape[1:]), rows.dtype)
    return np.concatenate([rows, filler]), np.arange(size) < len(rows)


@functools.partial(jax.jit, static_argnames="method")
def _program(task: Task, method: Method) -> Float[Array, "q c"]:
    return method(task)
