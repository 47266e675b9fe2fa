"""The square root of a positive semidefinite matrix, by matrix products alone."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from rdc_jax.core.loops import repeat

# Eigenvalues down to a thousandth of the trace are at their root by then. Those that
# are nothing but rounding are not yet: an exact root would blow them up.
_STEPS = 12


def square_root(matrix_nn: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Solve ``R R = A`` by the coupled iteration of Newton and Schulz.

    A decomposition would be exact, but is slow in batches on every backend, and its
    gradient is infinite where eigenvalues are equal, as those of padding are.

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.core.square_root import square_root
      >>> float(square_root(jnp.diag(jnp.array([4.0, 9.0])))[1, 1].round()), 9**0.5
      (3.0, 3.0)

    Args:
      matrix_nn: Symmetric, no eigenvalue negative; zero rows stay zero.

    Returns:
      ``[n, n]``, symmetric, no eigenvalue negative.
    """
    trace = jnp.trace(matrix_nn)
    scale = jnp.where(trace > 0, trace, 1)  # No eigenvalue is larger.
    eye_nn = jnp.eye(matrix_nn.shape[0], dtype=matrix_nn.dtype)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        root_nn, inverse_nn = state
        factor_nn = 1.5 * eye_nn - 0.5 * _product(inverse_nn, root_nn)
        return _product(root_nn, factor_nn), _product(factor_nn, inverse_nn)

    root_nn, _ = repeat(step, _STEPS, (matrix_nn / scale, eye_nn))
    # Rounding leaves it slightly askew; the root of the scale, safe in gradients.
    return 0.5 * (root_nn + root_nn.T) * jnp.sqrt(scale)


def _product(a_nn: Float[Array, "n n"], b_nn: Float[Array, "n n"]) -> Array:
    return jnp.einsum("nm,mk->nk", a_nn, b_nn, precision=lax.Precision.HIGHEST)
