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
    raw >>= np.uint64(11)
    bits = raw.reshape(len(distinct), steps * _WORDS)[place, :draws]
    return bits * 2.0**-53


def without_replacement(
    uniform_rm: Float64[np.ndarray, "r m"],
    size_r: Int64[np.ndarray, "r"],
    needed_r: Int64[np.ndarray, "r"] | None = None,
) -> Int32[np.ndarray, "r m"]:
    """The first entries of a random permutation of ``range(size)``, row by row.

    This is Fisher and Yates' shuffle, stopped after as many swaps as entries are needed
    and remembering only the places that a swap has touched: a row costs
    ``needed ** 2`` whatever its size.

    Args:
      uniform_rm: The draws, one an entry.
      size_r: What to permute in each row.
      needed_r: Entries wanted of each row, at most ``size``; all ``m`` by default.

    Returns:
      The entries; 0 beyond what is needed.
    """
    rows, m = uniform_rm.shape
    if needed_r is None:
        needed_r = np.full(rows, m)
    order = np.argsort(-needed_r, kind="stable")  # so that a step takes the first rows
    result = np.zeros((rows, m), np.int32)
    swaps: list[tuple[np.ndarray, np.ndarray]] = []  # the place, and what was put there
    for j in range(m):
        live = order[: np.count_nonzero(needed_r > j)]
        jump = uniform_rm[live, j] * np.maximum(size_r[live] - j, 1)
        place = j + jump.astype(np.int32)
        picked, put = place.copy(), np.full_like(place, j)
        for earlier_place, earlier_put in swaps:
            before, there = earlier_place[: len(live)], earlier_put[: len(live)]
            np.copyto(picked, there, where=before == place)
            np.copyto(put, there, where=before == j)
        result[live, j] = picked
        swaps.append((place, put))
    return result


def proportional_counts(
    weight_ec: Float64[np.ndarray, "e c"],
    room_ec: Int64[np.ndarray, "e c"],
    total: int,
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
    for _ in range(total):
        claim_ec = np.where(counts < room_ec, weight_ec / (counts + 0.5), -1.0)
        counts[np.arange(len(counts)), claim_ec.argmax(axis=1)] += 1
    return counts
