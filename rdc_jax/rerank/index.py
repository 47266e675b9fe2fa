"""A gallery that is indexed once, and any number of queries ranked with it.

Zhong et al. rank queries and gallery together, so queries change the ranks of gallery
rows. But the ranks among all rows are those within the gallery merged with the
queries': an index gives exactly the distances of the whole computation, at the cost of
the queries' own distances.
"""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import ArrayLike, Bool, Float, Int, Num
from scipy.sparse import csr_array

from rdc_jax.core.params import RDCParams
from rdc_jax.rerank.distances import cross_squared, pairs_squared, scaled
from rdc_jax.rerank.joint import merge_queries
from rdc_jax.rerank.nearest import Ranks, nearest
from rdc_jax.rerank.rows import Columns, make_columns, unit_rows
from rdc_jax.rerank.sets import (
    encode,
    jaccard_distances,
    neighbour_sets,
    query_expansion,
    row_numbers,
)

ZHONG = RDCParams(
    k=20,
    k2=6,
    lam=0.3,
    distance="squared_max",
    overlap=">",
    labels=False,
    subspace="none",
)


@dataclasses.dataclass(frozen=True)
class Index:
    """What re-ranking needs to know of a gallery; ``build_index`` makes it.

    Attributes:
      params: Sizes and readings.
      feat_gd: l2-normalised rows, in the dtype of the computation.
      valid_g: False on rows that are not finite.
      ranks: Within the gallery.
      pairs: Members of its neighbour sets, ``row << 32 | member``, ascending, and a
        last number above all of them.
      squared: Their squared distances.
    """

    params: RDCParams
    feat_gd: Float[np.ndarray, "g d"]
    valid_g: Bool[np.ndarray, " g"]
    ranks: Ranks
    pairs: Int[np.ndarray, " p"]
    squared: Float[np.ndarray, " p"]

    def rerank(
        self, query: Num[ArrayLike, "q d"], lam: float | None = None
    ) -> Float[np.ndarray, "q g"]:
        """Distances of queries to the gallery, queries and gallery ranked together.

        Args:
          query: Features. The other queries are part of what a query is ranked with.
          lam: Weight of the plain distance; ``None``: as in ``params``.

        Returns:
          λD + (1-λ)D_J; NaN at rows that are not finite.
        """
        return np.concatenate([after_bg for _, after_bg in self.blocks(query, lam)])

    def blocks(
        self, query: Num[ArrayLike, "q d"], lam: float | None = None
    ) -> Iterator[tuple[Float[np.ndarray, "b g"], Float[np.ndarray, "b g"]]]:
        """Give what ``rerank`` gives, for some queries at a time.

        Args:
          query: Features of all queries.
          lam: Weight of the plain distance; ``None``: as in ``params``.

        Yields:
          Distances before and after re-ranking, of the next queries.
        """
        check_features(query, self.feat_gd)
        weight = float(self.params.lam if lam is None else lam)
        feat_qd, valid_q = unit_rows(query)
        g, q = len(self.feat_gd), len(feat_qd)
        columns = make_columns((feat_qd, valid_q), (self.feat_gd, self.valid_g))
        ranks = merge_queries(
            self.ranks, self.feat_gd, self.valid_g, feat_qd, valid_q, columns
        )
        codes = self._codes(ranks, columns)
        of_gallery, total_g = codes[:g].tocsc(), codes[:g].sum(axis=1)
        for part, squared_bm in cross_squared(columns, q):
            largest_b1 = ranks.largest[g:][part, None]
            before_bg = squared_bm[:, q : q + g]
            before_bg = scaled(before_bg, largest_b1, self.params.distance)
            before_bg[:, ~self.valid_g] = np.nan
            before_bg[~valid_q[part]] = np.nan
            after_bg = weight * before_bg
            for row, after_g in enumerate(after_bg, start=g + part.start):
                jaccard_g = jaccard_distances(codes[[row]], of_gallery, total_g)
                after_g += (1 - weight) * jaccard_g
            yield before_bg, after_bg

    def _codes(self, ranks: Ranks, columns: Columns) -> csr_array:
        """Expanded codes of all rows; the index knows most of their distances."""
        members = neighbour_sets(ranks.ids, self.params)
        pairs = _pairs(members)
        place = np.searchsorted(self.pairs, pairs)
        squared = self.squared[place]
        new = np.flatnonzero(self.pairs[place] != pairs)
        # Numbers begin with the gallery, columns with the queries.
        n, q = len(ranks.ids), len(ranks.ids) - len(self.feat_gd)
        left, right = (x[new] + q for x in (row_numbers(members), members.indices))
        squared[new] = pairs_squared(columns, left % n, right % n)
        largest = ranks.largest[row_numbers(members)]
        dist = scaled(squared, largest, self.params.distance)
        codes = encode(members, dist, normalize=self.params.normalize)
        return query_expansion(codes, ranks.ids, self.params.k2)


def build_index(
    gallery: Num[ArrayLike, "g d"],
    params: RDCParams = ZHONG,
    *,
    table: Ranks | None = None,
    done: int = 0,
    advance: Callable[[int], object] = lambda _: None,
) -> Index:
    """Rank each gallery row among the gallery: the long part, done once.

    Example:
      >>> import jax
      >>> from rdc_jax.rerank import build_index
      >>> gallery, query = jax.random.normal(jax.random.key(0), (2, 100, 16))
      >>> index = build_index(gallery)
      >>> index.rerank(query[:3]).shape, index.rerank(query[3:], lam=0.5).shape
      ((3, 100), (97, 100))

    Args:
      gallery: Features, memory-mapped ones too.
      params: Uses ``k``, ``k2``, ``lam``, ``distance``, ``base``, ``overlap`` and
        ``normalize``.
      table: Where to keep the ranks, such as memory maps, ``depth(params)`` a row.
      done: Rows of ``table`` that were found before.
      advance: Called with the number of rows that are in ``table``.

    Returns:
      The index.
    """
    check_features(gallery, gallery)
    feat_gd, valid_g = unit_rows(gallery)
    columns = make_columns((feat_gd, valid_g))
    ranks = depth(params)
    table = table or Ranks.empty(len(feat_gd), ranks, feat_gd.dtype)
    rows_g = np.arange(len(feat_gd), dtype=np.int32)
    for part, found in nearest(feat_gd, rows_g, columns, ranks, which=rows_g[done:]):
        part = slice(done + part.start, done + part.stop)
        table.fill(part, found.without(~valid_g[part]))
        advance(part.stop)
    members = neighbour_sets(table.ids, params)
    squared = pairs_squared(columns, row_numbers(members), members.indices)
    pairs = np.append(_pairs(members), np.iinfo(np.int64).max)
    return Index(params, feat_gd, valid_g, table, pairs, np.append(squared, 0))


def depth(params: RDCParams) -> int:
    """Ranks that are looked at, the row itself included."""
    return max(params.k + 1, params.k2)


def _pairs(members: csr_array) -> Int[np.ndarray, " p"]:
    return row_numbers(members) << 32 | members.indices


def rerank(
    query: Num[ArrayLike, "q d"],
    gallery: Num[ArrayLike, "g d"],
    k: int = 20,
    k2: int = 6,
    lam: float = 0.3,
    *,
    params: RDCParams = ZHONG,
) -> Float[np.ndarray, "q g"]:
    """Distances of queries to a gallery by k-reciprocal re-ranking (Zhong et al. 2017).

    The same numbers as ``calibrated_distances`` of the queries followed by the gallery,
    in memory that grows with the number of rows and not with its square. To be called
    outside of ``jit``: it compiles its own blocks, and splits them over all devices.
    For more queries of the same gallery, see ``rdc_jax.rerank.build_index``.

    Example:
      >>> import jax
      >>> import rdc_jax
      >>> query, gallery = jax.random.normal(jax.random.key(0), (2, 100, 16))
      >>> rdc_jax.rerank(query[:3], gallery).shape
      (3, 100)

    Args:
      query: Features of any real dtype, l2-normalised here.
      gallery: Features of the rows to rank.
      k: Neighbours of a row, itself not counted.
      k2: Ranks that query expansion averages over, the row itself included.
      lam: Weight of the plain distance against the Jaccard distance.
      params: Other readings: ``distance``, ``base``, ``overlap``, ``normalize``.

    Returns:
      Distances, float32 (float64 where features are); NaN at rows that are not finite.

    Raises:
      ValueError: The arrays are not two sets of features of one length.
    """
    check_features(query, gallery)
    params = dataclasses.replace(params, k=k, k2=k2, lam=lam)
    return build_index(gallery, params).rerank(query)


def check_features(
    query: Num[ArrayLike, "..."], gallery: Num[ArrayLike, "..."]
) -> None:
    """Raise ``ValueError`` unless the arrays are features of one length."""
    shapes = np.shape(query), np.shape(gallery)
    if any(len(shape) != 2 or 0 in shape for shape in shapes):
        raise ValueError(f"query and gallery must be [q, d] and [g, d], got {shapes}")
    if shapes[0][1] != shapes[1][1]:
        raise ValueError(
            "query and gallery must have features of one length, "
            f"got {shapes[0][1]} and {shapes[1][1]}"
        )
