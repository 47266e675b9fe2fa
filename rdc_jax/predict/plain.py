"""Nearest class means of l2-normalised features, each query for itself.

In float64 on the host: the answer for a row is then the same, in every digit that
counts, whatever rows are beside it.
"""

import numpy as np
from jaxtyping import Float, Float64

from rdc_jax.predict.task import Distances, Support


def plain(support: Support, query_qd: Float[np.ndarray, "q d"]) -> Distances:
    """Compare queries with class means and supports, without calibration.

    >>> support = Support(np.eye(2), np.array([0, 1]), 2)
    >>> plain(support, np.array([[5.0, 0.0]])).classes.round(3).tolist()
    [[0.0, 1.414]]
    """
    support_sd, query_qd = unit_rows(support.features), unit_rows(query_qd)
    total_cd = np.zeros((support.num_classes, support_sd.shape[1]))
    np.add.at(total_cd, support.labels, support_sd)
    count_c1 = np.bincount(support.labels, minlength=support.num_classes)[:, None]
    return Distances(
        distances(query_qd, total_cd / count_c1), distances(query_qd, support_sd)
    )


def unit_rows(feat_nd: Float[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
    """Divide rows by their Euclidean norm; zero rows stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    feat_nd = feat_nd.astype(np.float64)
    largest_n1 = np.abs(feat_nd).max(axis=1, keepdims=True)
    feat_nd = feat_nd / np.where(largest_n1 > 0, largest_n1, 1)
    norm_n1 = np.linalg.norm(feat_nd, axis=1, keepdims=True)
    return feat_nd / np.where(norm_n1 > 0, norm_n1, 1)


def distances(
    a_nd: Float64[np.ndarray, "n d"], b_md: Float64[np.ndarray, "m d"]
) -> Float64[np.ndarray, "n m"]:
    """Euclidean distances between rows."""
    squared_nm = (
        (a_nd * a_nd).sum(axis=1)[:, None]
        + (b_md * b_md).sum(axis=1)[None, :]
        - 2 * a_nd @ b_md.T
    )
    return np.sqrt(np.maximum(squared_nm, 0))
