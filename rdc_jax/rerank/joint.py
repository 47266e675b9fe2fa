"""Ranks of gallery and queries together, from the gallery's own."""

import numpy as np
from jaxtyping import Bool, Float, Int

from rdc_jax.rerank.nearest import Ranks, nearest, reach
from rdc_jax.rerank.rows import Columns, make_columns


def merge_queries(
    own: Ranks,
    feat_gd: Float[np.ndarray, "g d"],
    valid_g: Bool[np.ndarray, " g"],
    feat_qd: Float[np.ndarray, "q d"],
    valid_q: Bool[np.ndarray, " q"],
    columns: Columns,
) -> Ranks:
    """Rank all rows among all rows; of rows equally near, queries come first.

    Args:
      own: Ranks of the gallery within the gallery.
      feat_gd: The gallery, l2-normalised.
      valid_g: Its rows that count.
      feat_qd: The queries, l2-normalised.
      valid_q: Those that count.
      columns: The queries, then the gallery.

    Returns:
      ``[g + q, r]``: numbers 0 … g-1 are the gallery's rows, the queries follow.
    """
    (g, depth), q = own.ids.shape, len(feat_qd)
    joint = Ranks.empty(g + q, depth, feat_gd.dtype)
    rows_q = np.arange(q, dtype=np.int32)
    for part, found in nearest(feat_qd, rows_q, columns, depth):
        ids_br = np.where(found.ids >= 0, (found.ids - q) % (g + q), -1)
        ranks = found._replace(ids=ids_br).without(~valid_q[part])
        joint.fill(slice(g + part.start, g + part.stop), ranks)

    # Most gallery rows have no query among their nearest rows, and keep their ranks.
    queries = make_columns((feat_qd, valid_q))
    bound_g = np.where(valid_g, own.squared[:, -1], -np.inf)
    reached_g, largest_g = reach(feat_gd, bound_g, queries)
    largest_g = np.maximum(largest_g, own.largest)
    joint.fill(slice(g), own._replace(largest=largest_g))
    nobody_g = np.full(g, -1, np.int32)
    reached_w = np.flatnonzero(reached_g)
    for part, found in nearest(feat_gd, nobody_g, queries, depth, which=reached_w):
        rows = reached_w[part]
        found = found._replace(ids=np.where(found.ids >= 0, found.ids + g, -1))
        joint.ids[rows], joint.squared[rows] = _merge(found, own, rows)
    return joint


def _merge(
    queries: Ranks, own: Ranks, rows: Int[np.ndarray, " b"]
) -> tuple[Int[np.ndarray, "b r"], Float[np.ndarray, "b r"]]:
    """The nearest of two tables; the row itself, which leads its own, comes first."""
    depth = own.ids.shape[1]
    ids_bs = np.concatenate([queries.ids, own.ids[rows]], axis=1)
    squared_bs = np.concatenate([queries.squared, own.squared[rows]], axis=1)
    key_bs = squared_bs.copy()
    key_bs[:, depth] = -1
    order_br = key_bs.argsort(axis=1, kind="stable")[:, :depth]
    ids_br = np.take_along_axis(ids_bs, order_br, axis=1)
    return ids_br, np.take_along_axis(squared_bs, order_br, axis=1)
