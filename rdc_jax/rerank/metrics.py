"""mAP and CMC, as person re-identification measures retrieval."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped


class Scores(NamedTuple):
    """How well queries are answered; NaN for those that nothing in the gallery fits.

    Attributes:
      precision: Average precision: the mean, over the gallery rows of the query's
        class, of the share of that class among the rows up to there.
      first: Rank of the first row of the class, from 1.
    """

    precision: Float[np.ndarray, " q"]
    first: Float[np.ndarray, " q"]


class Labels(NamedTuple):
    """What is known of rows.

    Attributes:
      classes: Of any dtype; negative numbers in a gallery mark rows to leave out.
      cameras: Who took each picture; ``None``: does not matter.
    """

    classes: Shaped[np.ndarray, " n"]
    cameras: Shaped[np.ndarray, " n"] | None = None

    def take(self, part: slice) -> "Labels":
        """Those of some rows."""
        cameras = None if self.cameras is None else self.cameras[part]
        return Labels(self.classes[part], cameras)


def score(dist_qg: Float[np.ndarray, "q g"], query: Labels, gallery: Labels) -> Scores:
    """Score queries; ties in distance go to the lowest index.

    Gallery rows of the query's class from its own camera are left out, as are those of
    a negative class, and rows whose distance is NaN.

    Example:
      >>> import numpy as np
      >>> from rdc_jax.rerank import Labels, score
      >>> gallery = Labels(np.array([7, 8, 7]))
      >>> score(np.array([[0.3, 0.1, 0.2]]), Labels(np.array([7])), gallery)
      Scores(precision=array([0.58333333]), first=array([2.]))
    """
    scores = [
        _score_one(dist_g, *_fits(query, gallery, row))
        for row, dist_g in enumerate(dist_qg)
    ]
    return Scores(*np.array(scores, np.float64).reshape(-1, 2).T)


def _fits(
    query: Labels, gallery: Labels, row: int
) -> tuple[Bool[np.ndarray, " g"], Bool[np.ndarray, " g"]]:
    """Which gallery rows are of the query's class, and which are left out."""
    same_g = gallery.classes == query.classes[row]
    out_g = np.zeros(len(same_g), bool)
    if np.issubdtype(gallery.classes.dtype, np.number):
        out_g = gallery.classes < 0
    if query.cameras is not None and gallery.cameras is not None:
        out_g = out_g | (same_g & (gallery.cameras == query.cameras[row]))
    return same_g, out_g


def _score_one(
    dist_g: Float[np.ndarray, " g"],
    same_g: Bool[np.ndarray, " g"],
    out_g: Bool[np.ndarray, " g"],
) -> tuple[float, float]:
    order = dist_g.argsort(kind="stable")
    order = order[~(out_g | np.isnan(dist_g))[order]]
    hits = np.flatnonzero(same_g[order]) + 1
    if not len(hits):
        return np.nan, np.nan
    return float((np.arange(1, len(hits) + 1) / hits).mean()), float(hits[0])


def summary(
    scores: Scores, ranks: tuple[int, ...] = (1, 5, 10)
) -> dict[str, int | float]:
    """Sum up scores in percent: mAP, and CMC as ``rank1``, ``rank5``, ….

    Args:
      scores: Of the queries; those without an answer in the gallery are not counted.
      ranks: Of CMC: the share of queries whose first hit is no later.
    """
    answered = ~np.isnan(scores.first)
    if not answered.any():
        return {"queries": 0}
    precision, first = scores.precision[answered], scores.first[answered]
    cmc = {f"rank{r}": 100 * float((first <= r).mean()) for r in ranks}
    return {"queries": int(answered.sum()), "mAP": 100 * float(precision.mean()), **cmc}


def nearest_rows(
    dist_qg: Float[np.ndarray, "q g"], count: int
) -> tuple[Int[np.ndarray, "q r"], Float[np.ndarray, "q r"]]:
    """The nearest gallery rows of each query and their distances, nearest first."""
    ids_qr = dist_qg.argsort(axis=1, kind="stable")[:, :count]
    return ids_qr, np.take_along_axis(dist_qg, ids_qr, axis=1)
