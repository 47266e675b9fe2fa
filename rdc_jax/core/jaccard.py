"""From neighbour sets to the Jaccard distance (Eq. 5-7)."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float


def encode(
    dist_nn: Float[Array, "n n"], sets_nn: Bool[Array, "n n"], *, normalize: bool = True
) -> Float[Array, "n n"]:
    """Weigh the members of each set by ``exp(-distance)`` (Eq. 5).

    Args:
      dist_nn: Distances.
      sets_nn: Neighbour sets.
      normalize: Divide each row by its sum.
    """
    # Eq. 5. Distances outside the set reach neither exp nor its gradient.
    code_nn = jnp.where(sets_nn, jnp.exp(-jnp.where(sets_nn, dist_nn, 0)), 0)
    if not normalize:
        return code_nn
    # Rows of padding have empty sets, and a sum of zero: they stay zero.
    total_n1 = code_nn.sum(axis=1, keepdims=True)
    return code_nn / jnp.where(total_n1 > 0, total_n1, 1)


def query_expansion(
    code_nn: Float[Array, "n n"], nearest_nn: Bool[Array, "n n"]
) -> Float[Array, "n n"]:
    """Replace each row's code by the mean code of its nearest rows, itself included.

    Args:
      code_nn: Encoded sets.
      nearest_nn: The first k2 ranks of each row.
    """
    weight_nn = nearest_nn.astype(code_nn.dtype)
    weight_nn = weight_nn / jnp.maximum(weight_nn.sum(axis=1, keepdims=True), 1)
    return jnp.einsum(
        "ig,gj->ij",
        weight_nn,
        code_nn,
        precision=lax.Precision.HIGHEST,
    )


def jaccard_distances(code_nn: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """``1 - Σmin/Σmax`` between encoded rows (Eq. 7), exactly zero on the diagonal."""
    # Eq. 7, for all pairs at once; the minimum is fused into the sum, so that [n, n, n]
    # is never stored.
    least_nn = jnp.minimum(code_nn[:, None, :], code_nn[None, :, :]).sum(axis=-1)
    # max(a, b) = a + b - min(a, b): the other sum needs no pass over the triples.
    total_n = code_nn.sum(axis=1)
    most_nn = total_n[:, None] + total_n[None, :] - least_nn
    ratio_nn = least_nn / jnp.where(most_nn > 0, most_nn, 1)
    return jnp.where(jnp.eye(code_nn.shape[0], dtype=bool), 0, 1 - ratio_nn)
