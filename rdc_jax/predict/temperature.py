"""Probabilities from distances: softmax(-distance / temperature).

How fast probability falls with distance depends on the number of labelled examples
(class means of few are uncertain) and on the task: where classes overlap, near
distances say little. The first is known beforehand, from tasks of eight image domains
(`docs/predict.md`): ``a + b / shots``. The second is measured on the task itself, as a
factor on that curve. Every support in turn is taken out and classified by the class
means of the others, and the factor is the one under which the true classes are most
likely, with a log-normal prior around one: a handful of supports can suggest anything.

In a class of one there is nothing to take out. Where all classes are so, the factor is
one, and the temperature the typical one of a task of that many examples.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, softmax

from rdc_jax.predict.task import Support, plain_distances

# The medians, over eight domains, of the temperatures that are best in hindsight.
TYPICAL = {"rdc_plus": (0.43, 0.80), "rdc": (0.066, 0.158), "npc_l2": (0.048, 0.142)}
_SPREAD = 0.5  # standard deviation of the prior on the factor's logarithm
_LOG_FACTORS = np.linspace(-3.0, 3.0, 241)


def fit_temperature(support: Support, method: str) -> tuple[float, bool]:
    """Find the temperature of a task by leaving supports out.

    The factor is found on plain distances and holds for those of other methods too: it
    says how much harder the task is than others, and all become less certain alike.
    That needs no queries, and costs next to nothing.

    Args:
      support: The labelled rows.
      method: A name in ``TYPICAL``.

    Returns:
      The temperature, and whether the supports had a say in it.
    """
    shot_c = np.bincount(support.labels)
    typical = _typical(method, shot_c.mean())
    if len(shot_c) < 2 or shot_c.max() < 2:
        return typical, False
    dist_hc, labels_h = left_out_distances(support)
    before = _typical("npc_l2", np.maximum(shot_c - 1, 1).mean())
    rows_h = np.arange(len(labels_h))
    log_likelihood_g = np.array(
        [
            log_softmax(-dist_hc / (before * np.exp(g)), axis=1)[rows_h, labels_h].sum()
            for g in _LOG_FACTORS
        ]
    )
    posterior_g = log_likelihood_g - _LOG_FACTORS**2 / (2 * _SPREAD**2)
    factor = np.exp(_LOG_FACTORS[posterior_g.argmax()])
    return float(typical * factor), True


def probabilities(
    dist_qc: Float[np.ndarray, "q c"], temperature: float
) -> Float[np.ndarray, "q c"]:
    """Softmax of minus distance over temperature, in float64.

    >>> probabilities(np.array([[0.1, 0.2]]), 0.1).round(3).tolist()
    [[0.731, 0.269]]
    """
    return softmax(-dist_qc.astype(np.float64) / temperature, axis=1)


def left_out_distances(
    support: Support,
) -> tuple[Float[np.ndarray, "h c"], Int[np.ndarray, " h"]]:
    """Classify each support by the others.

    When the r-th support of a class is out, so is the r-th of every other class that
    has two or more (counted around): all class means then rest on one support less,
    and no class is at a disadvantage.

    Returns:
      Distances of the supports of classes of two or more, and their labels.
    """
    feat_sd, labels_s, class_names, *_ = support
    members = [np.flatnonzero(labels_s == c) for c in range(len(class_names))]
    dist, labels = [], []
    for r in range(max(map(len, members))):
        out = {c: m[r % len(m)] for c, m in enumerate(members) if len(m) > 1}
        rest = np.setdiff1d(np.arange(len(labels_s)), list(out.values()))
        others = Support(feat_sd[rest], labels_s[rest], class_names)
        now = [c for c in out if r < len(members[c])]
        dist.append(plain_distances(others, feat_sd[[out[c] for c in now]]))
        labels += now
    return np.concatenate(dist), np.array(labels, np.intp)


def _typical(method: str, shots: float) -> float:
    a, b = TYPICAL[method]
    return a + b / float(shots)
