"""Random draws that belong to an episode's number, for many episodes at a time.

Every episode owns a fixed stretch of one long Philox stream, so its draws are the same
whichever other episodes are drawn with it. Only raw words are taken from NumPy, whose
stream is promised never to change; the arithmetic on them is here.
"""

import numpy as np
from jaxtyping import Float64, Int32, Int64

_WORDS = 4  # that one step of the Philox counter gives


def uniforms(
    key: int, numbers: Int64[np.ndarray, "e"], draws: int
) -> Float64[np.ndarray, "e draws"]:
    """Uniform numbers in [0, 1): row ``r`` is a function of ``key`` and ``numbers[r]``.

    >>> import numpy as np
    >>> all_five = uniforms(7, np.arange(5), draws=3)
    >>> bool((uniforms(7, np.array([4, 1]), draws=3) == all_five[[4, 1]]).all())
    True
    """
    steps = -(-draws // _WORDS)
    distinct, place = np.unique(numbers, return_inverse=True)
    runs = np.split(distinct, np.flatnonzero(np.diff(distinct) != 1) + 1)
    words = [
        np.random.Philox(key=key, counter=int(run[0]) * steps).random_raw(
            run.size * steps * _WORDS
        )
        for run in runs
        if run.size
    ]
    raw = np.concatenate([*words, np.empty(0, np.uint64)])
    bits = raw.reshape(len(distinct), steps * _WORDS)[:, :draws] >> np.uint64(11)
    return (bits * 2.0**-53)[place]


def without_replacement(
    uniform_rm: Float64[np.ndarray, "r m"], size_r: Int64[np.ndarray, "r"]
) -> Int32[np.ndarray, "r m"]:
    """The first ``m`` entries of a random permutation of ``range(size)``, row by row.

    This is Fisher and Yates' shuffle, stopped after ``m`` swaps and remembering only
    the places that a swap has touched: a row costs ``m ** 2`` whatever its size. Where
    ``m`` exceeds a row's size, the entries beyond it mean nothing.
    """
    rows, m = uniform_rm.shape
    steps = np.arange(m)[:, None]
    jump = (uniform_rm.T * np.maximum(size_r - steps, 1)).astype(np.int32)
    target = steps.astype(np.int32) + jump
    picked = target.copy()
    moved = np.empty((m, rows), np.int32)  # what step i has put in place target[i]
    for j in range(m):
        moved[j] = j
        for i in range(j):
            np.copyto(picked[j], moved[i], where=target[i] == target[j])
            np.copyto(moved[j], moved[i], where=target[i] == j)
    return picked.T


def proportional_counts(
    weight_ec: Float64[np.ndarray, "e c"],
    room_ec: Int64[np.ndarray, "e c"],
    total: int,
) -> Int64[np.ndarray, "e c"]:
    """Whole numbers in proportion to ``weight``, none above ``room``, with this sum.

    One unit at a time goes to the class that is furthest below its share (Webster's
    method of allotting seats); a class without room is passed over.

    >>> import numpy as np
    >>> proportional_counts(np.array([[3.0, 1.0]]), np.array([[9, 9]]), total=8)
    array([[6, 2]])
    >>> proportional_counts(np.array([[3.0, 1.0]]), np.array([[5, 9]]), total=8)
    array([[5, 3]])
    """
    counts = np.zeros_like(room_ec)
    rows = np.arange(len(counts))
    for _ in range(total):
        claim = np.where(counts < room_ec, weight_ec / (counts + 0.5), -1.0)
        counts[rows, claim.argmax(axis=1)] += 1
    return counts
