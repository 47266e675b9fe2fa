"""Neighbour sets, codes and Jaccard distances in sparse matrices.

What ``rdc_jax.core.neighbours`` and ``rdc_jax.core.jaccard`` do with dense masks of one
task. A row of a set has at most ``(k + 1) + k * h / 3`` members, h those of a half set,
so n rows need memory in proportion to n.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csc_array, csr_array

from rdc_jax.core.params import RDCParams


def neighbour_sets(ids_nr: Int[np.ndarray, "n r"], params: RDCParams) -> csr_array:
    """The expanded neighbour sets, a one for each member.

    Args:
      ids_nr: The first ranks of each row, at least ``k + 1``; -1 where there is none.
      params: Uses ``k``, ``base`` and ``overlap``.
    """
    # Ranks count the row itself, hence k + 1. Python rounds halves to even.
    near, close = (_first(ids_nr, k + 1) for k in (params.k, round(params.k / 2)))
    base = near * near.T.tocsr() if params.base == "reciprocal" else near
    half = close * close.T.tocsr()
    shared = (base @ half.T.tocsr()) * base  # |R(i, k) and R(g, k/2)|, g in R(i, k)
    # Compared with 3 |shared|: whole numbers.
    needed = 2 * half.sum(axis=1)[shared.indices]
    joins = shared.copy()
    joins.data = (
        3 * shared.data > needed if params.overlap == ">" else 3 * shared.data >= needed
    ).astype(np.float32)
    sets = (base + joins @ half).tocsr()
    sets.eliminate_zeros()
    sets.sort_indices()
    sets.data[:] = 1
    return sets


def _first(ids_nr: Int[np.ndarray, "n r"], count: int) -> csr_array:
    """The first ranks of each row as a matrix of ones."""
    ids_nr = np.sort(ids_nr[:, :count], axis=1)
    real_nr = ids_nr >= 0
    starts = np.concatenate([[0], real_nr.sum(axis=1).cumsum()])
    members = ids_nr[real_nr]
    n = len(ids_nr)
    return csr_array((np.ones(len(members), np.float32), members, starts), shape=(n, n))


def row_numbers(matrix: csr_array) -> Int[np.ndarray, " nnz"]:
    """The row of each stored number."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def encode(
    sets: csr_array, dist: Float[np.ndarray, " nnz"], *, normalize: bool
) -> csr_array:
    """Weigh the members of each set by ``exp(-distance)``.

    Args:
      sets: Neighbour sets.
      dist: Distance of each member, in the sets' order.
      normalize: Divide each row by its sum.
    """
    codes = csr_array((np.exp(-dist), sets.indices, sets.indptr), shape=sets.shape)
    if normalize:
        codes.data /= codes.sum(axis=1)[row_numbers(codes)]
    return codes


def query_expansion(
    codes: csr_array, ids_nr: Int[np.ndarray, "n r"], k2: int
) -> csr_array:
    """Replace each row's code by the mean code of its first k2 ranks."""
    ranks = _first(ids_nr, k2)
    counts = np.maximum(np.diff(ranks.indptr), 1).astype(codes.dtype)
    ranks.data = (1 / counts)[row_numbers(ranks)]
    return (ranks @ codes).tocsr()


def jaccard_distances(
    code: csr_array, others: csc_array, total_g: Float[np.ndarray, " g"]
) -> Float[np.ndarray, " g"]:
    """``1 - Σmin/Σmax`` between one code and others.

    Only codes that share a member with it are looked at, through the columns.

    Args:
      code: ``[1, n]``.
      others: ``[g, n]``, by columns.
      total_g: The sum of each of them.
    """
    starts, ends = (others.indptr[code.indices + i] for i in (0, 1))
    counts = ends - starts
    # The columns' stretches of the data, one after the other.
    before = np.concatenate([[0], counts.cumsum()[:-1]]) if len(counts) else counts
    places = np.arange(counts.sum()) + np.repeat(starts - before, counts)
    least = np.minimum(others.data[places], np.repeat(code.data, counts))
    least_g = np.bincount(others.indices[places], least, minlength=len(total_g))
    most_g = code.sum() + total_g - least_g
    return 1 - least_g / np.where(most_g > 0, most_g, 1)
