"""Preparation of a task's features before any method sees them."""

from collections.abc import Sequence
from typing import Literal, get_args

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from rdc_jax.core.distances import safe_sqrt
from rdc_jax.core.rows import Rows, float_dtype, l2_normalize, prepare_rows
from rdc_jax.core.sinkhorn import sinkhorn

Step = Literal[
    "l2",
    "power",
    "centre",
    "centre_support",
    "centre_apart",
    "uncentroid",
    "zscore",
    "luo",
    "bpa",
]

DEFAULT_STEPS: tuple[Step, ...] = ("power", "l2", "centre", "l2")

_LUO_EXPONENT = 1.3
_BPA_EPSILON, _BPA_STEPS = 0.1, 10
_FAR = 1e5  # A row is not to be matched with itself.


def prepare(
    features: Num[ArrayLike, "n d"],
    steps: Sequence[Step] = DEFAULT_STEPS,
    *,
    mask: Bool[ArrayLike, " n"] | None = None,
    support_labels: Int[ArrayLike, " s"] | None = None,
) -> Float[Array, "n p"]:
    """Prepare the features of one task, step by step.

    | step | what it does to the rows |
    |---|---|
    | ``l2`` | divides each by its length |
    | ``power`` | square root of each entry, with its sign |
    | ``centre`` | subtracts the task's mean: supports and queries together |
    | ``centre_support`` | subtracts the mean of the supports |
    | ``centre_apart`` | subtracts theirs from supports, the queries' from queries |
    | ``uncentroid`` | takes away the part along the task's mean (Xu et al. 2022) |
    | ``zscore`` | each row less its mean, over its standard deviation |
    | ``luo`` | ``sign(x) / ln(1/abs(x) + 1)^1.3`` (Luo et al. 2022) |
    | ``bpa`` | rows of the balanced pairwise affinity (Shalam and Korman 2024) |

    Example:
      >>> import jax, rdc_jax
      >>> features = jax.random.normal(jax.random.key(0), (30, 64)) ** 2
      >>> centred = rdc_jax.prepare(features, ("power", "l2", "centre"))
      >>> float(abs(centred.mean(axis=0)).max()) < 1e-6
      True

    Args:
      features: Rows of one task, supports first.
      steps: In order. Any number of them, static.
      mask: False on rows that are padding: zero in the result, without influence.
      support_labels: Classes of the first s rows, negative for no class; ``bpa``,
        ``centre_support`` and ``centre_apart`` ask which rows are supports.

    Returns:
      ``[n, d]``, or ``[n, n]`` after ``bpa``; NaN for rows that are not finite.

    Raises:
      ValueError: There is no such step, or it needs the supports.
    """
    rows = prepare_rows(features, mask)
    prepared_np = prepare_valid(rows, steps, support_labels=support_labels)
    filled_np = jnp.where(rows.broken[:, None], jnp.nan, prepared_np)
    return filled_np.astype(float_dtype(features))


def prepare_valid(
    rows: Rows,
    steps: Sequence[Step],
    *,
    support_labels: Int[ArrayLike, " s"] | None = None,
) -> Float[Array, "n p"]:
    """``prepare`` for rows whose validity is known; rows that do not count are zero."""
    feat_np = rows.feat
    for step in steps:
        if step not in get_args(Step):
            known = ", ".join(get_args(Step))
            raise ValueError(f"no step of preparation {step!r}: choose from {known}")
        if step in ("centre_support", "centre_apart") and support_labels is None:
            raise ValueError(f"the step {step} needs support_labels")
        feat_np = _apply(step, feat_np, rows.valid, support_labels)
        feat_np = jnp.where(rows.valid[:, None], feat_np, 0)
    return feat_np


def _apply(
    step: Step,
    feat_nd: Float[Array, "n d"],
    valid_n: Bool[Array, " n"],
    support_labels: Int[ArrayLike, " s"] | None,
) -> Float[Array, "n p"]:
    match step:
        case "l2":
            return l2_normalize(feat_nd)
        case "power":
            # ResNet features are positive and skewed; the root makes them more even.
            return jnp.sign(feat_nd) * safe_sqrt(jnp.abs(feat_nd))
        case "centre":
            return feat_nd - _mean(feat_nd, valid_n)
        case "centre_support":
            s = jnp.asarray(support_labels).shape[0]
            return feat_nd - _mean(feat_nd[:s], valid_n[:s])
        case "centre_apart":
            s = jnp.asarray(support_labels).shape[0]
            parts = ((feat_nd[:s], valid_n[:s]), (feat_nd[s:], valid_n[s:]))
            return jnp.concatenate([part - _mean(part, valid) for part, valid in parts])
        case "uncentroid":
            centroid_1d = l2_normalize(_mean(feat_nd, valid_n))
            along_n1 = (feat_nd * centroid_1d).sum(axis=1, keepdims=True)
            return feat_nd - along_n1 * centroid_1d
        case "zscore":
            # Over the features of one row, so no row sees another.
            centred_nd = feat_nd - feat_nd.mean(axis=1, keepdims=True)
            deviation_n1 = safe_sqrt(jnp.square(centred_nd).mean(axis=1, keepdims=True))
            return centred_nd / jnp.where(deviation_n1 > 0, deviation_n1, 1)
        case "luo":
            # sign(x) / ln(1/|x| + 1)^1.3, whose limit at zero is zero.
            size_nd = jnp.abs(feat_nd)
            safe_nd = jnp.where(size_nd > 0, size_nd, 1)
            curved_nd = jnp.log1p(1 / safe_nd) ** -_LUO_EXPONENT
            return jnp.where(size_nd > 0, jnp.sign(feat_nd) * curved_nd, 0)
        case "bpa":
            return _balanced_affinity(feat_nd, valid_n, support_labels)


def _mean(feat_nd: Float[Array, "n d"], valid_n: Bool[Array, " n"]) -> Array:
    count = jnp.maximum(valid_n.sum(), 1).astype(feat_nd.dtype)
    return feat_nd.sum(axis=0, keepdims=True) / count  # Other rows are zero.


def _balanced_affinity(
    feat_nd: Float[Array, "n d"],
    valid_n: Bool[Array, " n"],
    support_labels: Int[ArrayLike, " s"] | None,
) -> Float[Array, "n n"]:
    """Transport of the rows to each other: every row gives and takes the same mass.

    The plan is scaled to a largest entry of one, a row is one with itself, and what the
    labels tell is written over it: supports of a class are one, of two classes zero.
    """
    n = feat_nd.shape[0]
    unit_nd = l2_normalize(feat_nd)
    self_nn = jnp.eye(n, dtype=bool)
    cost_nn = jnp.where(self_nn, _FAR, 1 - jnp.einsum("nd,md->nm", unit_nd, unit_nd))
    mass_n = valid_n.astype(feat_nd.dtype)
    # Every row that counts has mass one to give and one to take; padding has none.
    plan_nn = sinkhorn(cost_nn, mass_n, mass_n, epsilon=_BPA_EPSILON, steps=_BPA_STEPS)
    largest = plan_nn.max()
    plan_nn = plan_nn / jnp.where(largest > 0, largest, 1)
    if support_labels is not None:
        labels_s = jnp.asarray(support_labels)
        s = labels_s.shape[0]
        known_s = (labels_s >= 0) & valid_n[:s]
        known_ss = known_s[:, None] & known_s[None, :]
        same_ss = (labels_s[:, None] == labels_s[None, :]).astype(plan_nn.dtype)
        told_ss = jnp.where(known_ss, same_ss, plan_nn[:s, :s])
        plan_nn = plan_nn.at[:s, :s].set(told_ss)
    return jnp.where(self_nn & valid_n[None, :], 1, plan_nn)
