"""Multinomial logistic regression on the few labelled rows of a task."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat

_HIGHEST = lax.Precision.HIGHEST
_NEVER = -1e30


def logistic_logits(
    train_md: Float[Array, "m d"],
    label_mc: Float[Array, "m c"],
    query_qd: Float[Array, "q d"],
    *,
    strength: float,
    steps: int,
) -> Float[Array, "q c"]:
    """Logits of the queries under a linear head that is fitted to the labelled rows.

    Minimises ``strength · Σ cross-entropy + ½|W|²``, the intercept counted in W, by
    Nesterov's accelerated gradient. The best W is a combination of the rows, so the
    m coefficients a class are what is fitted: with few rows of long features no product
    with the features is in the loop.

    Args:
      train_md: Labelled rows, of about unit length: longer ones need more steps.
      label_mc: One-hot, times the row's weight; zero rows take no part.
      query_qd: Rows to answer for.
      strength: Weight of the data against the penalty, scikit-learn's ``C``.
      steps: Gradient steps, fixed.

    Returns:
      ``[q, c]``; very negative for a class without rows.
    """
    gram_mm = jnp.einsum("md,nd->mn", train_md, train_md, precision=_HIGHEST)
    gram_qm = jnp.einsum("qd,md->qm", query_qd, train_md, precision=_HIGHEST)
    return logits_by_gram(gram_mm, label_mc, gram_qm, strength=strength, steps=steps)


def logits_by_gram(
    gram_mm: Float[Array, "m m"],
    label_mc: Float[Array, "m c"],
    gram_qm: Float[Array, "q m"],
    *,
    strength: float,
    steps: int,
) -> Float[Array, "q c"]:
    """The same from inner products alone, of the labelled rows and with the others."""
    weight_m1 = label_mc.sum(axis=1, keepdims=True)
    absent_c = ~(label_mc > 0).any(axis=0)
    gram_mm, gram_qm = 1 + gram_mm, 1 + gram_qm  # The intercept's.
    # The curvature is at most ½ strength λ + 1, and λ at most the largest row sum.
    sums_m = (jnp.abs(gram_mm) * weight_m1.T).sum(axis=1)
    largest = lax.stop_gradient(jnp.where(weight_m1[:, 0] > 0, sums_m, 0).max())
    curvature = 1 + 0.5 * strength * largest
    root = jnp.sqrt(curvature)
    momentum = (root - 1) / (root + 1)

    def logits(gram_nm: Array, coef_mc: Array) -> Array:
        logit_nc = jnp.einsum("nm,mc->nc", gram_nm, coef_mc, precision=_HIGHEST)
        return jnp.where(absent_c[None, :], _NEVER, logit_nc)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        coef_mc, ahead_mc = state
        answer_mc = jax.nn.softmax(logits(gram_mm, ahead_mc), axis=1)
        gradient_mc = strength * (weight_m1 * answer_mc - label_mc) + ahead_mc
        moved_mc = ahead_mc - gradient_mc / curvature
        return moved_mc, moved_mc + momentum * (moved_mc - coef_mc)

    zero_mc = jnp.zeros_like(label_mc)
    coef_mc, _ = repeat(step, steps, (zero_mc, zero_mc))
    return logits(gram_qm, coef_mc)
