"""Neighbour sets of one task as boolean matrices: row i marks the members of its set.

Sets of n rows are ``[n, n]`` masks, so that an intersection's size is a matrix product
and a union an elementwise or; no loop over rows and no ragged lists.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.core.params import RDCParams


def rank_positions(
    dist_nn: Float[Array, "n n"], valid_n: Bool[Array, " n"], depth: int
) -> Int[Array, "n n"]:
    """Place of column j in row i's ranking by distance, for the first ``depth`` places.

    The row itself is always first, ties go to the lowest index, and rows that do not
    count come after all others.

    Returns:
      0 for the row itself, 1 for its nearest neighbour, …; ``depth`` for columns that
      are farther or do not count.
    """
    n = dist_nn.shape[0]
    ranked = min(depth, n)
    key_nn = jnp.where(valid_n[None, :], -dist_nn, -jnp.inf)
    key_nn = jnp.where(jnp.eye(n, dtype=bool), jnp.inf, key_nn)
    _, order_nr = lax.top_k(key_nn, ranked)  # [n, r]; equal keys: lowest index first
    # Invert the ranking: order says which column has rank r, we want each column's
    # rank. A scatter would do it, one element after the other on CPU and slowly on
    # TPU. Instead, each of the r ranked columns of a row gets depth - rank points by
    # comparison, and the others none: depth - points is the rank, or depth. The
    # comparison is fused into the sum, so that [n, r, n] is never stored.
    hit_nrn = order_nr[:, :, None] == jnp.arange(n, dtype=order_nr.dtype)
    points_r = depth - jnp.arange(ranked)
    place_nn = depth - jnp.where(hit_nrn, points_r[None, :, None], 0).sum(axis=1)
    valid_nn = valid_n[:, None] & valid_n[None, :]
    return jnp.where(valid_nn, place_nn, depth)


def _count(mask: Bool[Array, "..."]) -> Float[Array, "..."]:
    # To count by matrix products. Zeros and ones are exact in bfloat16, and their sums
    # in the float32 that every backend accumulates in: no precision need be asked for.
    return mask.astype(jnp.float32)


def expand(
    base_nn: Bool[Array, "n n"], half_nn: Bool[Array, "n n"], *, strict: bool
) -> Bool[Array, "n n"]:
    """Add to R(i, k) the half sets of its members that overlap it by 2/3 (Eq. 4).

    Args:
      base_nn: R(i, k).
      half_nn: R(g, k/2).
      strict: Ask for more than two thirds instead of at least.
    """
    # |R(i, k) ∩ R(g, k/2)| for all i and g: row i of one times row g of the other.
    shared_nn = jnp.einsum("ij,gj->ig", _count(base_nn), _count(half_nn))
    # Eq. 4: shared >= 2/3 |R(g, k/2)|, times three to compare whole numbers.
    needed_n = 2 * _count(half_nn).sum(axis=1)
    enough_nn = (
        3 * shared_nn > needed_n[None, :]
        if strict
        else 3 * shared_nn >= needed_n[None, :]
    )
    joins_nn = base_nn & enough_nn
    # Eq. 4: the union of the half sets of those g that join. j is in it if any joining
    # g has it: a product that counts such g, and is above zero.
    return base_nn | (jnp.einsum("ig,gj->ij", _count(joins_nn), _count(half_nn)) > 0)


def use_labels(
    sets_nn: Bool[Array, "n n"], same_class_ss: Bool[Array, "s s"]
) -> Bool[Array, "n n"]:
    """Correct the sets of the support rows by their labels.

    Supports of other classes leave them, then supports of one class share the union of
    their sets. Sets of queries stay as they are: their labels are unknown.

    Args:
      sets_nn: Expanded sets, support rows first.
      same_class_ss: Supports of one class; rows that do not count belong to none.
    """
    s = same_class_ss.shape[0]
    # Columns of supports keep their own class; those of queries are left alone.
    own_ss = sets_nn[:s, :s] & same_class_ss
    support_sn = jnp.concatenate([own_ss, sets_nn[:s, s:]], axis=1)
    # The union over supports t of the class of s, again as a count above zero.
    united_sn = jnp.einsum("st,tj->sj", _count(same_class_ss), _count(support_sn)) > 0
    return jnp.concatenate([united_sn, sets_nn[s:]])


def neighbour_sets(
    place_nn: Int[Array, "n n"],
    *,
    params: RDCParams,
    same_class_ss: Bool[Array, "s s"] | None = None,
) -> Bool[Array, "n n"]:
    """The expanded neighbour sets R̂ of a task.

    Args:
      place_nn: Places in the rankings, at least the first ``k + 1`` of them.
      params: Uses ``k``, ``base``, ``overlap`` and ``labels``.
      same_class_ss: Supports of one class, or ``None`` when nothing is labelled.
    """
    # Places count the row itself, hence k + 1. Python rounds halves to even.
    near_nn = place_nn < params.k + 1
    close_nn = place_nn < round(params.k / 2) + 1
    # R(i, k): j is near i and i is near j. The half sets are mutual in either reading.
    base_nn = near_nn & near_nn.T if params.base == "reciprocal" else near_nn
    sets_nn = expand(base_nn, close_nn & close_nn.T, strict=params.overlap == ">")
    if same_class_ss is not None and params.labels:
        sets_nn = use_labels(sets_nn, same_class_ss)
    return sets_nn
