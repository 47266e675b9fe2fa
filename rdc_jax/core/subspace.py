"""The task-adaptive subspace of the tanh kernel (Eq. 9-10)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.core import decompositions
from rdc_jax.core.params import RDCParams, Solver

_HIGHEST = lax.Precision.HIGHEST

# Longer features than these are refused: the kernel has the square of their length.
MAX_FEATURES = 16_384

# Coordinates that join the task's rows in the iterated block.
_COORDINATES = 32
# Residual, relative to the largest eigenvalue, at which the iteration stops, and the
# number of rounds after which it stops anyway.
_TOLERANCE = 1e-5
_MAX_ROUNDS = 12


def tanh_kernel(feat_nd: Float[Array, "n d"]) -> Float[Array, "d d"]:
    """``tanh(XᵀX)``: similarities between feature dimensions (Eq. 10)."""
    return jnp.tanh(jnp.einsum("nd,ne->de", feat_nd, feat_nd, precision=_HIGHEST))


def tanh_subspace(
    feat_nd: Float[Array, "n d"],
    dim: int,
    *,
    valid_n: Bool[Array, " n"],
    solver: Solver,
) -> Float[Array, "n p"]:
    """Project a task onto the leading singular vectors of its tanh kernel.

    Distances do not change under a rotation inside the subspace, so any orthonormal
    basis of it will do. ``exact`` decomposes the whole kernel. ``iterate`` improves a
    block of directions that starts where nearly all of the kernel lies until the
    residual is small: mostly one round on features of real networks. It relies on a
    kernel that is nearly linear, with a spectrum that falls beyond the task's rows.
    That holds for l2-normalised, centred rows and at most as many dimensions as rows;
    elsewhere directions can be missed, see ``choose_solver``.

    In gradients the projection is a constant: singular vectors have no useful
    derivative where singular values meet.

    Args:
      feat_nd: Rows, centred or not; zero where they do not count.
      dim: The subspace's dimensions p; at least d means no projection at all.
      valid_n: Rows that count.
      solver: ``iterate`` or ``exact``.

    Returns:
      ``[n, min(p, d)]``.

    Raises:
      ValueError: The features are so long that their kernel would fill the memory.
    """
    if dim >= feat_nd.shape[1]:
        return feat_nd
    if feat_nd.shape[1] > MAX_FEATURES:
        raise ValueError(
            f"features of length {feat_nd.shape[1]:,} would need a matrix of "
            f"{4e-9 * feat_nd.shape[1] ** 2:.0f} GB for the tanh subspace; the longest "
            f"it takes are {MAX_FEATURES:,}: reduce their length (average over the "
            'image, or project), or use RDCParams(subspace="none") or a kernel between '
            'rows (subspace="linear")'
        )
    constant_nd = lax.stop_gradient(feat_nd)
    kernel_dd = tanh_kernel(constant_nd)  # Eq. 10
    if solver == "exact":
        # The kernel is symmetric: singular vectors are eigenvectors, and singular
        # values the absolute eigenvalues. eigh is several times quicker than svd.
        value_d, vector_dd = decompositions.eigh(kernel_dd)
        basis_dp = _leading(value_d, vector_dd, dim)[1]
    else:
        basis_dp = _iterate(kernel_dd, _start_block(constant_nd, valid_n, dim), dim)
    # Eq. 9: X_sub = X P.
    return jnp.einsum("nd,dp->np", feat_nd, basis_dp, precision=_HIGHEST)


def choose_solver(shape: tuple[int, ...], params: RDCParams) -> Solver:
    """The solver that ``auto`` stands for, by the shape ``(n, d)`` of the features.

    Iterating pays where the block is at most half of the kernel's size, and is as good
    as a full decomposition (distances within 1e-4) where the spectrum falls beyond the
    rows; otherwise the kernel is decomposed.

    Example:
      >>> import rdc_jax
      >>> from rdc_jax.core.subspace import choose_solver
      >>> choose_solver((80, 512), rdc_jax.RDCParams())
      'iterate'
      >>> choose_solver((80, 512), rdc_jax.RDCParams(centre=False))
      'exact'
    """
    n, d = shape
    if params.solver != "auto":
        return params.solver
    falls = params.kernel_input == "l2" and params.centre and params.dim <= n
    pays = 2 * (max(n, params.dim) + _COORDINATES) <= d
    return "iterate" if falls and pays else "exact"


def _start_block(
    feat_nd: Float[Array, "n d"], valid_n: Bool[Array, " n"], dim: int
) -> Float[Array, "d b"]:
    """Directions that hold nearly all of the kernel.

    tanh(G) is G = XᵀX, whose range the rows span, less what saturates: entries of the
    strongest coordinates. Their unit vectors bring in the eigenvectors that the rows
    alone would miss. Arbitrary columns stand in for padding, and fill up the block
    where the rows are fewer than the wanted dimensions.
    """
    n, d = feat_nd.shape
    _, strongest_m = lax.top_k(jnp.square(feat_nd).sum(axis=0), min(_COORDINATES, d))
    unit_dm = jax.nn.one_hot(strongest_m, d, dtype=feat_nd.dtype).T
    filler_db = jax.random.normal(
        jax.random.key(0), (d, max(n, dim)), feat_nd.dtype
    ) / jnp.sqrt(jnp.asarray(d, feat_nd.dtype))
    rows_dn = jnp.where(valid_n[None, :], feat_nd.T, filler_db[:, :n])
    return jnp.concatenate([rows_dn, filler_db[:, n:], unit_dm], axis=1)


def _leading(
    value_b: Float[Array, " b"], vector_db: Float[Array, "d b"], dim: int
) -> tuple[Float[Array, " p"], Float[Array, "d p"]]:
    """Eigenpairs of largest magnitude: the kernel is symmetric, not semi-definite."""
    _, order_p = lax.top_k(jnp.abs(value_b), dim)
    return value_b[order_p], vector_db[:, order_p]


def _orthonormalise(block_db: Float[Array, "d b"]) -> Float[Array, "d b"]:
    """Make columns orthogonal by a Cholesky factor of their inner products.

    Two matrix products and a small factorisation, instead of a Householder QR that is
    far slower in batches. The shift keeps dependent columns from breaking it: they
    come out short, not long.
    """
    gram_bb = jnp.einsum("db,dc->bc", block_db, block_db, precision=_HIGHEST)
    width = gram_bb.shape[0]
    # By the largest row sum, which bounds the largest eigenvalue: dependent columns
    # that point one way need more of a shift than nearly orthonormal ones.
    size = jnp.abs(gram_bb).sum(axis=1).max()
    shift = 8 * jnp.finfo(gram_bb.dtype).eps * size
    shift = jnp.where(shift > 0, shift, 1)
    factor_bb = decompositions.cholesky(
        gram_bb + shift * jnp.eye(width, dtype=shift.dtype)
    )
    return decompositions.solve_factor(factor_bb, block_db)


class _Progress(NamedTuple):
    image: Float[Array, "d b"]  # the kernel times the current block
    basis: Float[Array, "d p"]  # the best basis so far
    residual: Float[Array, ""]
    rounds: Int[Array, ""]


def _iterate(
    kernel_dd: Float[Array, "d d"], start_db: Float[Array, "d b"], dim: int
) -> Float[Array, "d p"]:
    """Block subspace iteration with a Rayleigh-Ritz step in each round."""

    def apply(block_db: Float[Array, "d b"]) -> Float[Array, "d b"]:
        return jnp.einsum("de,eb->db", kernel_dd, block_db, precision=_HIGHEST)

    def unsettled(state: _Progress) -> Bool[Array, ""]:
        return (state.residual > _TOLERANCE) & (state.rounds < _MAX_ROUNDS)

    def improve(state: _Progress) -> _Progress:
        # Once is not enough: the inner products square the block's condition number.
        block_db = _orthonormalise(_orthonormalise(state.image))
        image_db = apply(block_db)
        # Rayleigh-Ritz: the kernel restricted to the block is a small [b, b] matrix,
        # whose eigenvectors, mapped back, are the best the block can offer.
        small_bb = jnp.einsum("db,dc->bc", block_db, image_db, precision=_HIGHEST)
        value_b, vector_bb = decompositions.eigh(small_bb)
        value_p, ritz_bp = _leading(value_b, vector_bb, dim)
        basis_dp, moved_dp = (
            jnp.einsum("db,bp->dp", x_db, ritz_bp, precision=_HIGHEST)
            for x_db in (block_db, image_db)
        )
        # How far K v is from λ v, over the wanted vectors, relative to the largest λ.
        error_dp = moved_dp - basis_dp * value_p[None, :]
        largest = jnp.abs(value_p[0])
        residual = jnp.sqrt((error_dp * error_dp).sum(axis=0).max())
        residual = residual / jnp.where(largest > 0, largest, 1)
        return _Progress(image_db, basis_dp, residual, state.rounds + 1)

    image_db = apply(_orthonormalise(start_db))
    # Made of the kernel, it varies over devices as the kernel does (``shard_map``).
    unknown = jnp.full_like(kernel_dd[0, 0], jnp.inf)
    state = _Progress(image_db, start_db[:, :dim], unknown, jnp.asarray(0, jnp.int32))
    return lax.while_loop(unsettled, improve, state).basis
