"""Random draws that belong to a task's number, for many tasks at a time.

Every task owns a fixed stretch of one long Philox stream, so its draws are the same
whichever other tasks are drawn with it. Only raw words are taken from NumPy, whose
stream is promised never to change; the arithmetic on them is here.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

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
    raw >>= np.uint64(11)
    bits = raw.reshape(len(distinct), steps * _WORDS)[place, :draws]
    return bits * 2.0**-53


def without_replacement(uniform_m: Sequence[float], size: int) -> list[int]:
    """The first entries of a random permutation of ``range(size)``, one a number.

    This is Fisher and Yates' shuffle, which remembers only the places that a swap has
    touched: its cost does not depend on ``size``.

    >>> without_replacement([0.9, 0.9, 0.0], size=10)
    [9, 0, 2]
    """
    moved: dict[int, int] = {}
    picked = []
    for j, uniform in enumerate(uniform_m):
        place = j + int(uniform * (size - j))
        picked.append(moved.get(place, place))
        moved[place] = moved.get(j, j)
    return picked


def proportional_counts(
    weight_ec: Float64[np.ndarray, "e c"],
    room_ec: Int64[np.ndarray, "e c"],
    total: int | Int64[np.ndarray, " e"],
) -> Int64[np.ndarray, "e c"]:
    """Whole numbers in proportion to ``weight``, none above ``room``, with this sum.

    One unit at a time goes to the class that is furthest below its share (Webster's
    method of allotting seats); a class without room is passed over.

    A weight counts by its ratio to the row's largest: rows may be as small as floats
    go, but one some 10^308 times smaller than the largest is 0. Classes of weight 0 get
    what the others have no room for, from the first on. A row of zeros shares evenly.

    >>> import numpy as np
    >>> proportional_counts(np.array([[3.0, 1.0]]), np.array([[9, 9]]), total=8)
    array([[6, 2]])
    >>> proportional_counts(np.array([[3.0, 1.0]]), np.array([[5, 9]]), total=8)
    array([[5, 3]])
    """
    largest_e1 = weight_ec.max(axis=1, keepdims=True)
    # Near one, so that no quotient underflows; by a power of two, which keeps ratios.
    # What is then below the normal numbers has lost digits, and is 0.
    weight_ec = np.ldexp(weight_ec, -np.frexp(largest_e1)[1])
    weight_ec = np.where(weight_ec < np.finfo(np.float64).tiny, 0.0, weight_ec)
    weight_ec = np.where(largest_e1 > 0, weight_ec, 1.0)
    counts = np.zeros(weight_ec.shape, np.int64)
    for unit in range(np.max(total, initial=0)):
        claim_ec = np.where(counts < room_ec, weight_ec / (counts + 0.5), -1.0)
        counts[np.arange(len(counts)), claim_ec.argmax(axis=1)] += unit < total
    return counts
