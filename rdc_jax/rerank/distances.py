"""Squared distances of pairs, and of rows to all columns, to the last bits."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from rdc_jax.core.params import Distance
from rdc_jax.rerank.blocks import map_rows
from rdc_jax.rerank.rows import Columns

# Below it, what is left of a difference of products is too little for a square root.
_NEAR = 1e-5


def scaled(
    squared: Float[np.ndarray, "..."],
    largest: Float[np.ndarray, "..."],
    distance: Distance,
) -> Float[np.ndarray, "..."]:
    """Distances as ``RDCParams.distance`` names them.

    ``largest`` is the largest squared distance of each one's row.
    """
    if distance == "euclidean":
        return np.sqrt(squared)
    return squared / np.where(largest > 0, largest, 1)


def pairs_squared(
    columns: Columns, left_p: Int[np.ndarray, " p"], right_p: Int[np.ndarray, " p"]
) -> Float[np.ndarray, " p"]:
    """Squared distances of pairs of columns, exactly zero between equal ones."""
    out_p = np.empty(len(left_p), columns.feat_md.dtype)
    ids = (left_p.astype(np.int32), right_p.astype(np.int32))
    row_size = columns.feat_md.shape[1]
    for part, squared_b in map_rows(_pairs, ids, columns.feat_md, row_size=row_size):
        out_p[part] = squared_b
    return out_p


def _pairs(
    ids: tuple[Int[Array, " b"], Int[Array, " b"]], feat_md: Float[Array, "m d"]
) -> Float[Array, " b"]:
    left_bd, right_bd = (feat_md[ids_b] for ids_b in ids)
    return ((left_bd - right_bd) ** 2).sum(axis=1)


def cross_squared(
    columns: Columns, rows: int
) -> Iterator[tuple[slice, Float[np.ndarray, "b m"]]]:
    """Squared distances of the first columns to all columns, block by block.

    Args:
      columns: l2-normalised.
      rows: How many of them to compare with all.

    Yields:
      Places of the rows, and their squared distances.
    """
    m = len(columns.feat_md)
    ids_q = np.arange(rows, dtype=np.int32)
    for part, squared_bm in map_rows(_cross, (ids_q,), columns.feat_md, row_size=4 * m):
        squared_bm = squared_bm.copy()
        near_b, near_m = np.nonzero(squared_bm < _NEAR)
        squared_bm[near_b, near_m] = pairs_squared(columns, ids_q[part][near_b], near_m)
        yield part, squared_bm


def _cross(
    rows: tuple[Int[Array, " b"]], feat_md: Float[Array, "m d"]
) -> Float[Array, "b m"]:
    """The split of ``rdc_jax.core.distances.squared_distances``, for two matrices."""
    row_bd = feat_md[rows[0]]
    coarse_bd, coarse_md = (jnp.round(x * 2048) / 2048 for x in (row_bd, feat_md))
    fine_bd, fine_md = row_bd - coarse_bd, feat_md - coarse_md
    exact_bm = _gram(coarse_bd, coarse_md)
    rest_bm = _gram(coarse_bd, fine_md) + _gram(fine_bd, feat_md)
    exact_m = (coarse_md**2).sum(axis=1)
    rest_m = (fine_md * (coarse_md + feat_md)).sum(axis=1)
    exact_bm = (exact_m[rows[0]][:, None] + exact_m[None, :]) - 2 * exact_bm
    rest_bm = (rest_m[rows[0]][:, None] + rest_m[None, :]) - 2 * rest_bm
    return jnp.maximum(exact_bm + rest_bm, 0)


def _gram(a_bd: Float[Array, "b d"], b_md: Float[Array, "m d"]) -> Float[Array, "b m"]:
    return jnp.einsum("bd,md->bm", a_bd, b_md, precision=lax.Precision.HIGHEST)
