"""The nearest rows of each row, exactly, without an [n, n] matrix.

A matrix product gives all distances of a block of rows, rounded. The distances to a
few more candidates than are asked for are then computed again, as sums of squared
differences: exactly zero between equal rows, and the same wherever a row stands. Where
the candidates cannot be proved to hold the nearest rows, there are more of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.rerank.blocks import map_rows
from rdc_jax.rerank.rows import GROUP, Columns

_SPARE = 16  # Candidates more than asked for.


class Ranks(NamedTuple):
    """The nearest rows of each row, the row itself first, ties to the lowest index.

    Attributes:
      ids: ``[n, r]``, -1 where there are fewer than r.
      squared: ``[n, r]``, squared distances, infinite where ``ids`` is -1.
      largest: ``[n]``, the squared distance of the farthest row.
    """

    ids: Int[np.ndarray, "n r"]
    squared: Float[np.ndarray, "n r"]
    largest: Float[np.ndarray, " n"]

    @classmethod
    def empty(cls, n: int, depth: int, dtype: np.dtype) -> "Ranks":
        """A table without neighbours, to be filled."""
        squared_nr = np.full((n, depth), np.inf, dtype)
        return cls(np.full((n, depth), -1, np.int32), squared_nr, np.zeros(n, dtype))

    def fill(self, where: slice | Int[np.ndarray, " w"], ranks: "Ranks") -> None:
        """Write ranks, maybe fewer than the table has, into rows of the table."""
        depth = ranks.ids.shape[1]
        self.ids[where, :depth] = ranks.ids
        self.squared[where, :depth] = ranks.squared
        self.largest[where] = ranks.largest

    def without(self, out_n: Bool[np.ndarray, " n"]) -> "Ranks":
        """The same, with no neighbours for some rows."""
        ids_nr = np.where(out_n[:, None], -1, self.ids)
        squared_nr = np.where(out_n[:, None], np.inf, self.squared)
        return self._replace(ids=ids_nr, squared=squared_nr)


def nearest(
    feat_nd: Float[np.ndarray, "n d"],
    own_n: Int[np.ndarray, " n"],
    columns: Columns,
    depth: int,
    *,
    which: Int[np.ndarray, " w"] | None = None,
    candidates: int | None = None,
) -> Iterator[tuple[slice, Ranks]]:
    """Find the nearest columns of rows, block by block.

    Args:
      feat_nd: l2-normalised rows.
      own_n: The column that is the row itself, and comes first; -1: none is.
      columns: What is searched.
      depth: Ranks to find.
      which: Places of the rows to search for; ``None``: all.
      candidates: Columns of each row to compare exactly; ``None``: ``depth`` and some.

    Yields:
      Places within ``which``, and their ranks.
    """
    m, d = columns.feat_md.shape
    which = np.arange(len(feat_nd)) if which is None else which
    candidates = min(candidates or depth + _SPARE, m)
    for part, (*found, proved_b) in map_rows(
        _nearest,
        (feat_nd, own_n),
        columns,
        row_size=max(m, candidates * d),
        which=which,
        depth=min(depth, m),
        candidates=candidates,
    ):
        table = Ranks.empty(len(proved_b), depth, feat_nd.dtype)
        table.fill(slice(None), Ranks(*found))
        again_w = np.flatnonzero(~proved_b)
        for places, better in nearest(
            feat_nd,
            own_n,
            columns,
            depth,
            which=which[part][again_w],
            candidates=4 * candidates,
        ):
            table.fill(again_w[places], better)
        yield part, table


def reach(
    feat_nd: Float[np.ndarray, "n d"],
    bound_n: Float[np.ndarray, " n"],
    columns: Columns,
) -> tuple[Bool[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Tell which rows may have a column within a bound, and how far columns are.

    Args:
      feat_nd: l2-normalised rows.
      bound_n: Squared distances.
      columns: What is searched.

    Returns:
      False on rows without such a column, and squared distances of the farthest ones.
    """
    reached_n, largest_n = np.empty(len(feat_nd), bool), np.empty_like(bound_n)
    row_size = len(columns.feat_md)
    for part, found in map_rows(_reach, (feat_nd, bound_n), columns, row_size=row_size):
        reached_n[part], largest_n[part] = found
    return reached_n, largest_n


def _reach(
    rows: tuple[Float[Array, "b d"], Float[Array, " b"]], columns: Columns
) -> tuple[Bool[Array, " b"], Float[Array, " b"]]:
    row_bd, bound_b = rows
    rough_bm = _rough_squared(row_bd, columns.feat_md)
    nearest_b = jnp.where(columns.valid_m[None, :], rough_bm, jnp.inf).min(axis=1)
    return nearest_b <= bound_b + _slack(row_bd), _largest(row_bd, columns, rough_bm)


def _nearest(
    rows: tuple[Float[Array, "b d"], Int[Array, " b"]],
    columns: Columns,
    *,
    depth: int,
    candidates: int,
) -> tuple[Array, ...]:
    """The fields of ``Ranks`` for a block, and which rows' ranks are proved."""
    (row_bd, own_b), (feat_md, valid_m) = rows, columns
    m = len(feat_md)
    rough_bm = _rough_squared(row_bd, feat_md)
    largest_b = _largest(row_bd, columns, rough_bm)
    own_bm = own_b[:, None] == jnp.arange(m)[None, :]
    rough_bm = jnp.where(valid_m[None, :], rough_bm, jnp.inf)
    rough_bm = jnp.where(own_bm & valid_m[None, :], -jnp.inf, rough_bm)

    rough_bc, found_bc = _smallest(rough_bm, candidates)
    exact_bc = _exact_squared(row_bd, feat_md, found_bc)
    exact_bc = jnp.where(jnp.isinf(rough_bc), rough_bc, exact_bc)
    exact_bc, found_bc = lax.sort((exact_bc, found_bc), num_keys=2)

    # A column that is no candidate is as far as the last of them, but for rounding.
    beyond_b = rough_bc.max(axis=1)
    proved_b = exact_bc[:, depth - 1] < beyond_b - _slack(row_bd)
    proved_b |= jnp.isinf(beyond_b)
    exact_br, ids_br = exact_bc[:, :depth], found_bc[:, :depth]
    ids_br = jnp.where(exact_br == jnp.inf, -1, ids_br)
    # Products with a row of zeros, as broken rows are here, are not rounded.
    proved_b |= (row_bd == 0).all(axis=1) | (candidates == m)
    return ids_br, jnp.maximum(exact_br, 0), largest_b, proved_b


def _rough_squared(
    row_bd: Float[Array, "b d"], feat_md: Float[Array, "m d"]
) -> Float[Array, "b m"]:
    """Squared distances, wrong by some ``eps`` since their terms are near one."""
    dot_bm = jnp.einsum("bd,md->bm", row_bd, feat_md, precision=lax.Precision.HIGHEST)
    norm_b, norm_m = (row_bd * row_bd).sum(axis=1), (feat_md * feat_md).sum(axis=1)
    return norm_b[:, None] + norm_m[None, :] - 2 * dot_bm


def _slack(row_bd: Float[Array, "b d"]) -> float:
    """How wrong a rough squared distance may be.

    Errors of a sum of d products grow like a random walk; this is above ten of its
    standard deviations.
    """
    return 4 * row_bd.shape[1] ** 0.5 * float(jnp.finfo(row_bd.dtype).eps)


def _largest(
    row_bd: Float[Array, "b d"], columns: Columns, rough_bm: Float[Array, "b m"]
) -> Float[Array, " b"]:
    """Squared distance of the farthest column; zero where no column counts."""
    feat_md, valid_m = columns
    rough_bm = jnp.where(valid_m[None, :], rough_bm, -jnp.inf)
    farthest_b1 = rough_bm.argmax(axis=1)[:, None]
    largest_b = _exact_squared(row_bd, feat_md, farthest_b1)[:, 0]
    return jnp.where(valid_m[farthest_b1[:, 0]], largest_b, 0)


def _exact_squared(
    row_bd: Float[Array, "b d"], feat_md: Float[Array, "m d"], ids_bc: Int[Array, "b c"]
) -> Float[Array, "b c"]:
    """Squared distances to some columns, by differences."""
    difference_bcd = feat_md[ids_bc] - row_bd[:, None, :]
    return (difference_bcd * difference_bcd).sum(axis=-1)


def _smallest(
    x_bm: Float[Array, "b m"], count: int
) -> tuple[Float[Array, "b c"], Int[Array, "b c"]]:
    """The smallest numbers of each row and their places.

    The ``count`` smallest numbers are in the ``count`` groups of smallest minimum; on
    CPU, a minimum over groups takes a fraction of the time of a top-k over all.
    """
    b, m = x_bm.shape
    if m // GROUP <= count:
        value_bc, place_bc = lax.top_k(-x_bm, count)
        return -value_bc, place_bc
    x_bgw = x_bm.reshape(b, m // GROUP, GROUP)
    _, group_bc = lax.top_k(-x_bgw.min(axis=-1), count)
    some_bcw = jnp.take_along_axis(x_bgw, group_bc[:, :, None], axis=1)
    value_bc, inside_bc = lax.top_k(-some_bcw.reshape(b, count * GROUP), count)
    group_bc = jnp.take_along_axis(group_bc, inside_bc // GROUP, axis=1)
    return -value_bc, group_bc * GROUP + inside_bc % GROUP
