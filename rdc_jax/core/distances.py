"""Pairwise distances within one task (Eq. 3)."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from rdc_jax.core.params import Distance

_HIGHEST = lax.Precision.HIGHEST


def _gram(a_nd: Float[Array, "n d"], b_md: Float[Array, "m d"]) -> Float[Array, "n m"]:
    return jnp.einsum("nd,md->nm", a_nd, b_md, precision=_HIGHEST)


@jax.custom_jvp
def squared_distances(feat_nd: Float[Array, "n d"]) -> Float[Array, "n n"]:
    """Squared Euclidean distances between rows of norm at most one.

    ``|a|² + |b|² - 2ab`` loses half the digits when a is near b, and what is left
    depends on the order in which a matrix product sums. Here each row is split into a
    coarse part on a grid of 2⁻¹¹ and a remainder. Products of coarse parts are
    multiples of 2⁻²² below one, so float32 sums them exactly in any order; the
    remainder's products are about a thousand times smaller, and so is their error.
    """
    if feat_nd.dtype == jnp.float64:
        gram_nn = _gram(feat_nd, feat_nd)
    else:
        coarse_nd = jnp.round(feat_nd * 2048) / 2048
        fine_nd = feat_nd - coarse_nd
        cross_nn = _gram(coarse_nd, fine_nd)
        exact_nn = _gram(coarse_nd, coarse_nd)
        rest_nn = cross_nn + cross_nn.T + _gram(fine_nd, fine_nd)
        return polarise(exact_nn) + polarise(rest_nn)
    return polarise(gram_nn)


def polarise(gram_nn: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Squared distances between vectors, from their inner products."""
    norm_n = jnp.diagonal(gram_nn)
    # Norms are summed first, so that the result is symmetric to the last bit.
    return (norm_n[:, None] + norm_n[None, :]) - 2 * gram_nn


@squared_distances.defjvp
def _squared_distances_jvp(primals, tangents):  # type: ignore[no-untyped-def]
    # Rounding to the grid has no derivative, the distance has: 2 (a - b) (da - db).
    (feat_nd,), (tangent_nd,) = primals, tangents
    cross_nn = _gram(feat_nd, tangent_nd)
    return squared_distances(feat_nd), polarise(cross_nn + cross_nn.T)


def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Square root with gradient zero, instead of infinite, where x is zero."""
    # Two wheres: the gradient of the branch not taken is multiplied by zero, and
    # zero times the infinite slope at zero would be NaN.
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), 0)


def pairwise_distances(
    feat_nd: Float[Array, "n d"],
    *,
    equal_nn: Bool[Array, "n n"],
    valid_n: Bool[Array, " n"],
    distance: Distance = "euclidean",
) -> Float[Array, "n n"]:
    """Distances between l2-normalised rows, exactly zero between equal rows.

    Args:
      feat_nd: l2-normalised rows.
      equal_nn: Pairs known to be equal, the diagonal among them.
      valid_n: Rows that count; others take no part in the row maximum.
      distance: ``euclidean``, or ``squared_max``: squared over the row's maximum.

    Returns:
      ``[n, n]``; symmetric when Euclidean. Pairs with rows that do not count are
      meaningless.
    """
    # Rounding may leave equal rows apart, or push a small distance below zero. Both
    # matter here: ties decide ranks, and the square root has no gradient at zero.
    squared_nn = squared_distances(feat_nd)
    squared_nn = jnp.where(equal_nn, 0, jnp.maximum(squared_nn, 0))
    if distance == "euclidean":
        return safe_sqrt(squared_nn)  # Eq. 3
    # Zhong's code: D² over the row's maximum, which makes the matrix asymmetric.
    largest_n1 = jnp.where(valid_n[None, :], squared_nn, 0).max(axis=1, keepdims=True)
    return squared_nn / jnp.where(largest_n1 > 0, largest_n1, 1)


def cross_distances(
    query_qd: Float[Array, "q d"], proto_cd: Float[Array, "c d"]
) -> Float[Array, "q c"]:
    """Euclidean distances between two small sets of rows, by direct differences."""
    # [q, c, d] is small for a task, and differences lose fewer digits than products.
    difference_qcd = query_qd[:, None, :] - proto_cd[None, :, :]
    return safe_sqrt((difference_qcd * difference_qcd).sum(axis=-1))
