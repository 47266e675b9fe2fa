"""How queries are put into batches: by content, so that their order does not matter.

RDC compares all rows of a task with each other, and so takes memory and time that grow
with the square and the cube of their number. Thousands of queries are therefore
answered in batches, each with all supports. Which queries share a batch is decided by
a hash of their features: a shuffle that neither a seed nor the order of files enters,
so that classes are spread evenly and the same pictures get the same answers.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

_LEAST = 8


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


def even_batches(
    order_q: Int[np.ndarray, " q"], most: int
) -> Iterator[Int[np.ndarray, " b"]]:
    """Cut an order into the fewest batches of at most ``most``, of nearly equal size.

    >>> [len(batch) for batch in even_batches(np.arange(10), 4)]
    [4, 3, 3]
    """
    count = -(-len(order_q) // most)
    yield from np.array_split(order_q, count)


def bucket(n: int) -> int:
    """Round a size up to one of a few, so that few programs are compiled.

    Sizes are 8, 12, 16, 24, 32, 48, …: at most half of a row count is padding, a
    fifth on average.

    >>> [bucket(n) for n in (1, 9, 13, 25, 75, 200)]
    [8, 12, 16, 32, 96, 256]
    """
    size = _LEAST
    while size < n:
        size = size * 3 // 2 if size & (size - 1) == 0 else size // 3 * 4
    return size


def pad_rows(rows: np.ndarray, size: int) -> np.ndarray:
    """Append rows of zeros up to ``size``.

    >>> pad_rows(np.ones((2, 3)), 4).sum(axis=1).tolist()
    [3.0, 3.0, 0.0, 0.0]
    """
    filler = np.zeros((size - len(rows), *rows.shape[1:]), rows.dtype)
    return np.concatenate([rows, filler])
