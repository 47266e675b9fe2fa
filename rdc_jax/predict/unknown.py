"""How little each picture looks like any of the classes: a share from 0 to 1.

It is the share of pictures of the classes that would be nearer to the nearest class
mean than this picture is. It looks at each picture by itself, where RDC compares them
too: so it does not depend on which others there are.

How near pictures of the classes are is learnt from the supports. Each in turn is taken
out and compared with the class means of the others. A mean of s examples is farther
from a picture than one of more, by the root of 1 + 1/s: so distances to means that lack
one are shrunk. In a class of one there is nothing to take out. What helps there is how
far the classes' supports are from each other, of which the distance to the nearest
class mean is typically some share, ``a + b / shots``, known from eight image domains
(``docs/predict.md``). Both are joined, as samples of a normal distribution of which the
typical share is worth ten; what is then expected of another picture has Student's
distribution.
"""

import numpy as np
from jaxtyping import Float, Float64
from scipy import special

from rdc_jax.predict.task import Support, unit_rows
from rdc_jax.predict.temperature import left_out_distances

_SHARE = (0.605, 0.175)  # a and b: through the medians over the domains.
_DEVIATION = 0.2  # Of distances in a task, as a share of their mean.
_WORTH = 10.0  # Supports that the typical share counts as.


def unknown_shares(
    support: Support, dist_qc: Float[np.ndarray, "q c"]
) -> Float64[np.ndarray, " q"]:
    """Give the share of pictures of the classes that would be nearer than each query.

    Args:
      support: The labelled rows.
      dist_qc: Plain distances of the queries to the class means.
    """
    near_h = _left_out(support)
    between = _between(support)
    worth = _WORTH if between else 0.0
    shots = np.bincount(support.labels).mean()
    usual = (_SHARE[0] + _SHARE[1] / shots) * between
    count = worth + len(near_h)
    if not count:  # One support: nothing tells near from far.
        return np.full(len(dist_qc), 0.5)
    mean = (worth * usual + near_h.sum()) / count
    squares = worth * ((_DEVIATION * usual) ** 2 + (usual - mean) ** 2)
    variance = (squares + ((near_h - mean) ** 2).sum()) / count
    scale = np.sqrt(variance * (1 + 1 / count)) + np.finfo(np.float64).tiny
    return special.stdtr(count, (dist_qc.min(axis=1) - mean) / scale)


def _left_out(support: Support) -> Float64[np.ndarray, " h"]:
    """Distances of supports to the nearest class mean, if they were not in one."""
    shot_c = np.bincount(support.labels)
    if shot_c.max() < 2:
        return np.zeros(0)
    dist_hc, labels_h = left_out_distances(support)
    return dist_hc.min(axis=1) * np.sqrt(1 - 1 / shot_c[labels_h] ** 2.0)


def _between(support: Support) -> float:
    """Mean distance of supports of different classes; 0 if there is one class."""
    unit_sd = unit_rows(support.features)
    dist_ss = np.sqrt(np.maximum(2 - 2 * unit_sd @ unit_sd.T, 0))
    other_ss = support.labels[:, None] != support.labels[None, :]
    return float(dist_ss[other_ss].mean()) if other_ss.any() else 0.0
