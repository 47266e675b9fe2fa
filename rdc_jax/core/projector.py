"""The projector onto a symmetric matrix's leading directions, by matrix products."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from rdc_jax.core import decompositions

# |X² - X| at which two more products leave nothing but rounding.
_NEARLY = 1e-3
# Products after which it must do; half of them will, unless the eigenvalues on both
# sides of the cut are nearly equal.
_MAX_PRODUCTS = 64


class Leading(NamedTuple):
    """What a symmetric matrix T does along its directions of largest magnitude.

    Attributes:
      projector: Onto them.
      inverse: About the inverse of T there, zero elsewhere: up to a factor between one
        half and one near the cut.
    """

    projector: Float[Array, "b b"]
    inverse: Float[Array, "b b"]


def leading_projector(matrix_bb: Float[Array, "b b"], dim: int) -> Leading:
    """Project onto the ``dim`` eigenvectors of largest absolute eigenvalue.

    Eigenvectors themselves would be slow in batches, and wait for LAPACK's threads on
    CPU. λ²/(λ² + σ²) maps eigenvalues to [0, 1] in the order of their magnitudes;
    purification drives them apart from there.

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.core.projector import leading_projector
      >>> leading = leading_projector(jnp.diag(jnp.array([1.0, -3.0, 2.0])), 2)
      >>> jnp.diag(leading.projector).round(3).tolist()
      [0.0, 1.0, 1.0]

    Args:
      matrix_bb: Symmetric. Its leading directions are found to more digits if its rows
        differ in size as its eigenvalues do, as after a Gram-Schmidt process.
      dim: How many; where fewer eigenvalues differ from zero, those.
    """
    size = jnp.linalg.norm(matrix_bb)
    scale = jnp.where(size > 0, size, 1)
    scaled_bb = matrix_bb / scale
    eps = jnp.finfo(matrix_bb.dtype).eps
    # A σ at which the cut comes to lie near one half: lengths of rows tell.
    length_p, _ = lax.top_k(jnp.linalg.norm(scaled_bb, axis=1), dim)
    sigma = jnp.maximum(length_p[-1] / 2, 4 * eps)
    square_bb = _product(scaled_bb, scaled_bb) + sigma * sigma * _eye(matrix_bb)
    # Rounding is relative to the diagonal, and so is what keeps it positive.
    square_bb += 16 * eps * jnp.diag(jnp.diagonal(square_bb))
    inverse_bb = decompositions.invert_lower(decompositions.cholesky(square_bb))
    half_bb = _product(inverse_bb, scaled_bb)
    projector_bb = _purify(_product(half_bb.T, half_bb), dim)
    # (T² + σ²)⁻¹ T
    inverse_bb = _product(_product(inverse_bb.T, half_bb), projector_bb)
    return Leading(projector_bb, inverse_bb / scale)


class _State(NamedTuple):
    x: Float[Array, "b b"]
    distance: Float[Array, ""]  # |X² - X| before the last step
    products: Int[Array, ""]


def _purify(start_bb: Float[Array, "b b"], dim: int) -> Float[Array, "b b"]:
    """Drive the dim largest eigenvalues to one and the others to zero.

    Purification, as in electronic structure (Niklasson 2002): of eigenvalues x in
    [0, 1], both x² and 2x - x² leave the order alone and part large from small. Taking
    the one whose trace is nearer to dim ends with dim ones.
    """

    def unsettled(state: _State) -> Array:
        return (state.distance > _NEARLY) & (state.products < _MAX_PRODUCTS)

    def step(state: _State) -> _State:
        square_bb = _product(state.x, state.x)
        trace, trace_of_square = jnp.trace(state.x), jnp.trace(square_bb)
        down = jnp.abs(trace_of_square - dim)
        lower = down < jnp.abs(2 * trace - trace_of_square - dim)
        return _State(
            jnp.where(lower, square_bb, 2 * state.x - square_bb),
            jnp.linalg.norm(square_bb - state.x),
            state.products + 1,
        )

    # Made of the matrix, it varies over devices as the matrix does (``shard_map``).
    unknown = jnp.full_like(start_bb[0, 0], jnp.inf)
    start = _State(start_bb, unknown, jnp.asarray(0, jnp.int32))
    x_bb = lax.while_loop(unsettled, step, start).x
    # Both once more, whose errors are the squares of what they were.
    x_bb = _product(x_bb, x_bb)
    return 2 * x_bb - _product(x_bb, x_bb)


def _eye(matrix_bb: Float[Array, "b b"]) -> Float[Array, "b b"]:
    return jnp.eye(matrix_bb.shape[0], dtype=matrix_bb.dtype)


def _product(left_bb: Float[Array, "b b"], right_bb: Float[Array, "b b"]) -> Array:
    return jnp.matmul(left_bb, right_bb, precision=lax.Precision.HIGHEST)
