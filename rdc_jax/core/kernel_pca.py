"""Kernel PCA of one task, with the kernels and defaults of scikit-learn (Table 4)."""

import math
from typing import Literal

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from rdc_jax.core import decompositions
from rdc_jax.core.distances import squared_distances

_HIGHEST = lax.Precision.HIGHEST

Kernel = Literal["linear", "gaussian", "polynomial", "sigmoid"]


def kernel_matrix(feat_nd: Float[Array, "n d"], kernel: Kernel) -> Float[Array, "n n"]:
    """Similarities between rows, less a constant; gamma = 1/d, coefficient 1, degree 3.

    Centring takes any constant away, but not the rounding of numbers that are this
    constant and little else, as those of short rows are. So it is left out beforehand.

    Args:
      feat_nd: Rows.
      kernel: ``linear`` xy, ``gaussian`` exp(-γ|x-y|²) - 1, ``polynomial``
        (γxy + 1)³ - 1 or ``sigmoid`` tanh(γxy + 1) - tanh 1.
    """
    gamma = 1.0 / feat_nd.shape[1]
    if kernel == "gaussian":
        # Scaled into the unit ball, where the squared distances are most exact.
        scale = jnp.maximum(jnp.sqrt((feat_nd * feat_nd).sum(axis=1).max()), 1)
        squared_nn = squared_distances(feat_nd / scale)
        return jnp.expm1(-gamma * scale * scale * jnp.maximum(squared_nn, 0))
    inner_nn = jnp.einsum("nd,md->nm", feat_nd, feat_nd, precision=_HIGHEST)
    match kernel:
        case "linear":
            return inner_nn
        case "polynomial":
            # (u + 1)³ - 1 = u³ + 3u² + 3u
            u_nn = gamma * inner_nn
            return u_nn * (3 + u_nn * (3 + u_nn))
        case "sigmoid":
            # tanh(u + 1) = (t + a) / (1 + at) with t = tanh u and a = tanh 1; less a,
            # the numerator is (1 - a²)t.
            a, t_nn = math.tanh(1), jnp.tanh(gamma * inner_nn)
            return (1 - a * a) * t_nn / (1 + a * t_nn)


def kernel_pca(
    feat_nd: Float[Array, "n d"],
    dim: int,
    *,
    valid_n: Bool[Array, " n"],
    kernel: Kernel,
) -> Float[Array, "n p"]:
    """Coordinates of the rows along the leading components of a kernel PCA.

    As ``sklearn.decomposition.KernelPCA(dim, kernel=...)`` up to the components'
    signs, which distances do not see. Components without variance are zero.

    In gradients the components are constants, as in ``tanh_subspace``.

    Args:
      feat_nd: Rows; zero where they do not count.
      dim: Components wanted.
      valid_n: Rows that count.
      kernel: The kernel's name.

    Returns:
      ``[n, min(p, n)]``.
    """
    valid_nn = valid_n[:, None] & valid_n[None, :]
    kernel_nn = jnp.where(valid_nn, kernel_matrix(feat_nd, kernel), 0)
    count = jnp.maximum(valid_n.sum(), 1).astype(feat_nd.dtype)
    mean_n = kernel_nn.sum(axis=1) / count
    centred_nn = kernel_nn - mean_n[:, None] - mean_n[None, :] + mean_n.sum() / count
    centred_nn = jnp.where(valid_nn, centred_nn, 0)
    value_n, vector_nn = decompositions.eigh(lax.stop_gradient(centred_nn))
    value_p, order_p = lax.top_k(value_n, min(dim, value_n.shape[0]))
    # Relative to the largest, what is left of a zero eigenvalue is rounding.
    floor = 16 * jnp.finfo(value_n.dtype).eps * jnp.maximum(value_p[0], 0)
    kept_p = value_p > floor
    scale_p = jnp.where(kept_p, lax.rsqrt(jnp.where(kept_p, value_p, 1)), 0)
    basis_np = vector_nn[:, order_p] * scale_p[None, :]
    return jnp.einsum("nm,mp->np", centred_nn, basis_np, precision=_HIGHEST)
