"""Label propagation over a graph of one task (Zhou et al. 2004)."""

import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

_HIGHEST = lax.Precision.HIGHEST

# Terms of the series are left out where they sum to less than this.
_REST = 1e-7


def cosine_graph(
    feat_nd: Float[Array, "n d"],
    valid_n: Bool[Array, " n"],
    *,
    k: int,
    power: float = 3.0,
) -> Float[Array, "n n"]:
    """Weights ``relu(cos)^power`` of each row's k nearest others, made symmetric.

    Args:
      feat_nd: l2-normalised rows.
      valid_n: See ``neighbour_graph``.
      k: The same.
      power: The same.

    Returns:
      ``[n, n]``, as ``neighbour_graph``.
    """
    cosine_nn = jnp.einsum("nd,md->nm", feat_nd, feat_nd, precision=_HIGHEST)
    return neighbour_graph(cosine_nn, valid_n, k=k, power=power)


def neighbour_graph(
    cosine_nn: Float[Array, "n n"],
    valid_n: Bool[Array, " n"],
    *,
    k: int,
    power: float = 3.0,
) -> Float[Array, "n n"]:
    """The same from the cosines of all pairs.

    Args:
      cosine_nn: Or another symmetric similarity; negative ones count as zero.
      valid_n: Rows that count; the others get no edges.
      k: Neighbours of a row, itself not counted.
      power: Larger ones favour the nearest.

    Returns:
      ``[n, n]``, symmetric, zero on the diagonal. An edge that both ends chose weighs
      twice as much as one that only one of them chose.
    """
    n = cosine_nn.shape[0]
    pair_nn = valid_n[:, None] & valid_n[None, :] & ~jnp.eye(n, dtype=bool)
    weight_nn = nearest_only(jnp.where(pair_nn, jnp.maximum(cosine_nn, 0), 0), k)
    # The inner where keeps 0^power, whose gradient is infinite for powers below one,
    # from being differentiated.
    positive_nn = weight_nn > 0
    weight_nn = jnp.where(positive_nn, jnp.where(positive_nn, weight_nn, 1) ** power, 0)
    return weight_nn + weight_nn.T


def nearest_only(weight_nn: Float[Array, "n n"], k: int) -> Float[Array, "n n"]:
    """Keep the k largest weights of each row; of equal ones, those of lowest index."""
    n = weight_nn.shape[0]
    if k >= n:
        return weight_nn
    _, nearest_nk = lax.top_k(weight_nn, k)
    # [n, k] indices to a mask by comparison, as in ``rank_positions``: no scatter.
    kept_nn = (nearest_nk[:, :, None] == jnp.arange(n, dtype=nearest_nk.dtype)).any(
        axis=1
    )
    return jnp.where(kept_nn, weight_nn, 0)


def propagate(
    weight_nn: Float[Array, "n n"], label_nc: Float[Array, "n c"], alpha: float
) -> Float[Array, "n c"]:
    """Spread labels along a graph: ``(I - αS)⁻¹ Y`` with ``S = D^-½ W D^-½``.

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.core.propagation import propagate
      >>> chain = jnp.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
      >>> propagate(chain, jnp.array([[1.0], [0.0], [0.0]]), 0.5).argsort(axis=0)
      Array([[2],
             [1],
             [0]], dtype=int32)

    Args:
      weight_nn: Symmetric weights, not negative; rows without edges keep their labels.
      label_nc: Y, zero where nothing is known.
      alpha: Share that a row takes from its neighbours, static, in [0, 1).

    Returns:
      ``[n, c]``.
    """
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must be in [0, 1), got {alpha}")
    return geometric_sum(alpha * normalised(weight_nn), label_nc, alpha)


def normalised(weight_nn: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """``D^-½ W D^-½`` with the row sums D: eigenvalues from -1 to 1."""
    degree_n = weight_nn.sum(axis=1)
    positive_n = degree_n > 0
    scale_n = jnp.where(positive_n, lax.rsqrt(jnp.where(positive_n, degree_n, 1)), 0)
    return scale_n[:, None] * weight_nn * scale_n[None, :]


def geometric_sum(
    matrix_nn: Float[Array, "n n"], start_nc: Float[Array, "n c"], rate: float
) -> Float[Array, "n c"]:
    """Sum ``Σ_t Mᵗ Y``, which is ``(I - M)⁻¹ Y``, of a matrix of norm at most ``rate``.

    With ``P = M^(2^j)`` the sum of the first ``2^(j+1)`` terms is ``(I + P)`` times
    that of the first ``2^j``, so squaring sums exponentially many terms by matrix
    products alone: no factorisation, which in batches is slow on every backend.
    """
    for _ in range(_doublings(rate)):
        start_nc = start_nc + _product(matrix_nn, start_nc)  # (I + P) Y
        matrix_nn = _product(matrix_nn, matrix_nn)  # P ← P²
    return start_nc


def _doublings(rate: float) -> int:
    """How often to double the terms: rate^terms / (1 - rate) bounds what is left."""
    if rate == 0:
        return 0
    terms = math.log(_REST * (1 - rate)) / math.log(rate)
    return math.ceil(math.log2(max(terms, 1)))


def _product(
    a_nm: Float[Array, "n m"], b_mc: Float[Array, "m c"]
) -> Float[Array, "n c"]:
    return jnp.einsum("nm,mc->nc", a_nm, b_mc, precision=_HIGHEST)
