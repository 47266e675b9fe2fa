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
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from rdc_jax.core.rows import compute_dtype, l2_normalize, prepare_rows
from rdc_jax.rerank.blocks import map_rows, replicate

_SPARE = 16  # Candidates more than asked for.
_GROUP = 128  # Columns that the search for candidates looks at as one.


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


def unit_rows(
    features: Num[ArrayLike, "n d"],
) -> tuple[Float[np.ndarray, "n d"], Bool[np.ndarray, " n"]]:
    """l2-normalise rows, block by block.

    Returns:
      The rows, at least float32, and which of them count: those that are finite.
    """
    features = np.asarray(features)
    n, d = features.shape
    unit_nd = np.empty((n, d), compute_dtype(features[:0]))
    valid_n = np.empty(n, bool)
    for part, block in map_rows(_unit_rows, (features,), (), row_size=4 * d):
        unit_nd[part], valid_n[part] = block
    return unit_nd, valid_n


def _unit_rows(
    rows: tuple[Num[Array, "b d"]], _: tuple[()]
) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
    prepared = prepare_rows(rows[0])
    return l2_normalize(prepared.feat), prepared.valid


class Columns(NamedTuple):
    """The rows that are searched, on every device; see ``make_columns``."""

    feat_md: Float[Array, "m d"]
    valid_m: Bool[Array, " m"]


def make_columns(
    feat_md: Float[np.ndarray, "m d"], valid_m: Bool[np.ndarray, " m"]
) -> Columns:
    """Put the rows to search on every device.

    Args:
      feat_md: l2-normalised rows.
      valid_m: Rows that count.
    """
    extra = -len(feat_md) % _GROUP
    feat_md = np.pad(feat_md, ((0, extra), (0, 0)))
    return Columns(*replicate((feat_md, np.pad(valid_m, (0, extra)))))


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


def _nearest(
    rows: tuple[Float[Array, "b d"], Int[Array, " b"]],
    columns: Columns,
    *,
    depth: int,
    candidates: int,
) -> tuple[Array, ...]:
    """The fields of ``Ranks`` for a block, and which rows' ranks are proved."""
    (row_bd, own_b), (feat_md, valid_m) = rows, columns
    m, d = feat_md.shape
    rough_bm = _rough_squared(row_bd, feat_md)
    own_bm = own_b[:, None] == jnp.arange(m)[None, :]
    farthest_b1 = jnp.where(valid_m[None, :], rough_bm, -jnp.inf).argmax(axis=1)[
        :, None
    ]
    rough_bm = jnp.where(valid_m[None, :], rough_bm, jnp.inf)
    rough_bm = jnp.where(own_bm & valid_m[None, :], -jnp.inf, rough_bm)

    rough_bc, found_bc = _smallest(rough_bm, candidates)
    largest_b = _exact_squared(row_bd, feat_md, farthest_b1)[:, 0]
    largest_b = jnp.where(valid_m[farthest_b1[:, 0]], largest_b, 0)
    exact_bc = _exact_squared(row_bd, feat_md, found_bc)
    exact_bc = jnp.where(jnp.isinf(rough_bc), rough_bc, exact_bc)
    exact_bc, found_bc = lax.sort((exact_bc, found_bc), num_keys=2)

    # A column that is no candidate is at least as far, but for rounding, as the last
    # candidate. Errors of a sum of d products grow like a random walk, and this bound
    # is above ten of its standard deviations.
    slack = 4 * d**0.5 * float(jnp.finfo(row_bd.dtype).eps)
    beyond_b = rough_bc.max(axis=1)
    proved_b = (exact_bc[:, depth - 1] < beyond_b - slack) | jnp.isinf(beyond_b)
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
    if m // _GROUP <= count:
        value_bc, place_bc = lax.top_k(-x_bm, count)
        return -value_bc, place_bc
    x_bgw = x_bm.reshape(b, m // _GROUP, _GROUP)
    _, group_bc = lax.top_k(-x_bgw.min(axis=-1), count)
    some_bcw = jnp.take_along_axis(x_bgw, group_bc[:, :, None], axis=1)
    value_bc, inside_bc = lax.top_k(-some_bcw.reshape(b, count * _GROUP), count)
    group_bc = jnp.take_along_axis(group_bc, inside_bc // _GROUP, axis=1)
    return -value_bc, group_bc * _GROUP + inside_bc % _GROUP
