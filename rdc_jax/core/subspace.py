"""The task-adaptive subspace of the tanh kernel (Eq. 9-10)."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.core import decompositions
from rdc_jax.core.distances import polarise
from rdc_jax.core.loops import repeat
from rdc_jax.core.params import RDCParams, Solver
from rdc_jax.core.projector import leading_projector
from rdc_jax.core.rows import stir

_HIGHEST = lax.Precision.HIGHEST

# Longer features than these are refused: the kernel has the square of their length.
MAX_FEATURES = 16_384

# Coordinates that join the task's rows in the iterated block.
_COORDINATES = 16
# How far distances between the projected rows may still move where the iteration
# stops, and the number of rounds after which it stops anyway.
_TOLERANCE = 2e-5
_MAX_ROUNDS = 12


def tanh_kernel(feat_nd: Float[Array, "n d"]) -> Float[Array, "d d"]:
    """``tanh(XᵀX)``: similarities between feature dimensions (Eq. 10)."""
    return jnp.tanh(_product("nd,ne->de", feat_nd, feat_nd))


def tanh_subspace(
    feat_nd: Float[Array, "n d"],
    dim: int,
    *,
    valid_n: Bool[Array, " n"],
    solver: Solver,
) -> Float[Array, "n m"]:
    """Project a task onto the leading singular vectors of its tanh kernel.

    Distances do not change under a rotation inside the subspace, so any orthonormal
    basis of it will do, and so will a projector. ``exact`` decomposes the whole kernel.
    ``iterate`` improves a block of directions that starts where nearly all of the
    kernel lies until distances between the rows move no more: mostly one round on
    features of real networks. It relies on a kernel that is nearly linear, with a
    spectrum that falls beyond the task's rows. That holds for l2-normalised, centred
    rows and at most as many dimensions as rows; elsewhere directions can be missed,
    see ``choose_solver``.

    In gradients the projection is a constant: singular vectors have no useful
    derivative where singular values meet.

    Args:
      feat_nd: Rows, centred or not; zero where they do not count.
      dim: The subspace's dimensions p; at least d means no projection at all.
      valid_n: Rows that count.
      solver: ``iterate`` or ``exact``.

    Returns:
      Coordinates of the rows: ``exact`` gives min(p, d) of them, ``iterate`` those of
      the projected rows in a few more dimensions.

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
        # The kernel is symmetric, not semi-definite: singular vectors are eigenvectors,
        # and singular values the absolute eigenvalues. eigh is much quicker than svd.
        value_d, vector_dd = decompositions.eigh(kernel_dd)
        _, order_p = lax.top_k(jnp.abs(value_d), dim)
        # Eq. 9: X_sub = X P.
        return _product("nd,dp->np", feat_nd, vector_dd[:, order_p])
    block_bd, projector_bb = _iterate(kernel_dd, constant_nd, valid_n, dim)
    # Eq. 9 in the coordinates of the block, [n, b], less what is not in the subspace.
    return _product("nb,bc->nc", _product("nd,bd->nb", feat_nd, block_bd), projector_bb)


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


def in_columns(coordinates_nm: Float[Array, "n m"], dim: int) -> Float[Array, "n p"]:
    """Turn coordinates of rank p so that p columns hold them."""
    if coordinates_nm.shape[1] <= dim:
        return coordinates_nm
    constant_nm = lax.stop_gradient(coordinates_nm)
    _, vector_mm = decompositions.eigh(_product("nm,nk->mk", constant_nm, constant_nm))
    return _product("nm,mp->np", coordinates_nm, vector_mm[:, -dim:])


def _product(subscripts: str, *factors: Array) -> Array:
    return jnp.einsum(subscripts, *factors, precision=_HIGHEST)


class _Round(NamedTuple):
    image: Float[Array, "b d"]  # the block times the kernel
    block: Float[Array, "b d"]  # orthonormal directions
    projector: Float[Array, "b b"]  # onto the leading directions, in the block
    error: Float[Array, ""]  # of distances between the rows, an estimate
    number: Int[Array, ""]


def _iterate(
    kernel_dd: Float[Array, "d d"],
    feat_nd: Float[Array, "n d"],
    valid_n: Bool[Array, " n"],
    dim: int,
) -> tuple[Float[Array, "b d"], Float[Array, "b b"]]:
    """Block subspace iteration, with a projector in the place of Ritz vectors.

    Returns:
      The block and the projector.
    """

    def unsettled(state: _Round) -> Bool[Array, ""]:
        return (state.error > _TOLERANCE) & (state.number < _MAX_ROUNDS)

    def improve(state: _Round) -> _Round:
        # Once is not enough: the inner products square the block's condition number.
        block_bd = repeat(_orthonormalise, 2, state.image)
        image_bd = _product("bd,de->be", block_bd, kernel_dd)
        # Rayleigh-Ritz: the kernel restricted to the block is a small [b, b] matrix,
        # whose leading directions are the best the block can offer.
        small_bb = _product("bd,cd->bc", block_bd, image_bd)
        small_bb = (small_bb + small_bb.T) / 2
        leading = leading_projector(small_bb, dim)
        # Another power step takes directions V to V + T⁻¹ R, where R is what the kernel
        # takes out of the block. What matters is how far the rows see them move.
        rows_nb = _product("nd,bd->nb", feat_nd, block_bd)
        gone_nb = _product("nd,bd->nb", feat_nd, image_bd)
        gone_nb -= _product("nb,bc->nc", rows_nb, small_bb)
        error = _largest_change(
            _product("nb,bc->nc", rows_nb, leading.projector),
            _product("nb,bc->nc", gone_nb, leading.inverse),
        )
        return _Round(image_bd, block_bd, leading.projector, error, state.number + 1)

    image_bd = _start_image(kernel_dd, feat_nd, valid_n, dim)
    width = image_bd.shape[0]
    # Made of the kernel, they vary over devices as the kernel does (``shard_map``).
    unknown = jnp.full_like(kernel_dd[0, 0], jnp.inf)
    start = _Round(
        image=image_bd,
        block=jnp.zeros_like(image_bd),
        projector=jnp.broadcast_to(jnp.zeros_like(unknown), (width, width)),
        error=unknown,
        number=jnp.asarray(0, jnp.int32),
    )
    found = lax.while_loop(unsettled, improve, start)
    return found.block, found.projector


def _largest_change(
    rows_nb: Float[Array, "n b"], step_nb: Float[Array, "n b"]
) -> Float[Array, ""]:
    """How far distances between l2-normalised rows change if the rows take a step."""
    length_n1 = jnp.linalg.norm(rows_nb, axis=1, keepdims=True)
    # Of rows much shorter than the others little is left but rounding.
    least = length_n1.max() / 1000
    length_n1 = jnp.maximum(length_n1, jnp.where(least > 0, least, 1))
    unit_nb, step_nb = rows_nb / length_n1, step_nb / length_n1
    step_nb -= unit_nb * (unit_nb * step_nb).sum(axis=1, keepdims=True)
    inner_nn, cross_nn, inner_step_nn = (
        _product("nb,mb->nm", *pair)
        for pair in ((unit_nb, unit_nb), (unit_nb, step_nb), (step_nb, step_nb))
    )
    # Of |u + s|² - |u|² over 2 |u|, for differences u and s of two rows; where the rows
    # are nearly equal, the root of rounding would be in the way.
    change_nn = polarise(cross_nn + cross_nn.T + inner_step_nn)
    dist_nn = jnp.sqrt(jnp.maximum(polarise(inner_nn), 1e-6))
    return (jnp.abs(change_nn) / (2 * dist_nn)).max()


def _start_image(
    kernel_dd: Float[Array, "d d"],
    feat_nd: Float[Array, "n d"],
    valid_n: Bool[Array, " n"],
    dim: int,
) -> Float[Array, "b d"]:
    """The kernel times nearly orthonormal directions that hold nearly all of it.

    tanh(G) is G = XᵀX, whose range the rows span, less what saturates: entries of the
    strongest coordinates. Their unit vectors, whose images are rows of the kernel,
    bring in the eigenvectors that the rows alone would miss. Arbitrary rows stand in
    for padding, and fill up the block where the rows are fewer than the dimensions.
    """
    n, d = feat_nd.shape
    _, strongest_m = lax.top_k(jnp.square(feat_nd).sum(axis=0), min(_COORDINATES, d))
    filler_rd = _filler(max(n, dim), d).astype(feat_nd.dtype)
    rows_rd = jnp.where(valid_n[:, None], feat_nd, filler_rd[:n])
    rows_rd = jnp.concatenate([rows_rd, filler_rd[n:]])
    image_bd = jnp.concatenate(
        [_product("rd,de->re", rows_rd, kernel_dd), kernel_dd[strongest_m]]
    )
    # The same coordinates of the rows are their inner products with the unit vectors.
    cross_rm = rows_rd[:, strongest_m]
    gram_bb = jnp.block(
        [
            [_product("rd,qd->rq", rows_rd, rows_rd), cross_rm],
            [cross_rm.T, jnp.eye(len(strongest_m), dtype=feat_nd.dtype)],
        ]
    )
    return _product("bc,cd->bd", _orthogonaliser(gram_bb), image_bd)


def _filler(r: int, d: int) -> Float[Array, "r d"]:
    """Rows of ±1/√d that look random; random numbers would take much longer."""
    word_rd = jnp.arange(1, r * d + 1, dtype=jnp.uint32).reshape(r, d)
    word_rd = stir(stir(word_rd, 0x85EBCA6B), 0xC2B2AE35)
    return jnp.where(word_rd >> 31 == 1, 1.0, -1.0) / math.sqrt(d)


def _orthonormalise(block_bd: Float[Array, "b d"]) -> Float[Array, "b d"]:
    """Make rows orthonormal by a Cholesky factor of their inner products.

    Two matrix products and a small factorisation, instead of a Householder QR that is
    far slower in batches.
    """
    gram_bb = _product("bd,cd->bc", block_bd, block_bd)
    return _product("bc,cd->bd", _orthogonaliser(gram_bb), block_bd)


def _orthogonaliser(gram_bb: Float[Array, "b b"]) -> Float[Array, "b b"]:
    """What makes rows of these inner products orthonormal.

    A shift keeps dependent rows from breaking it: they come out short, not long.
    """
    # By the largest row sum, which bounds the largest eigenvalue: dependent rows
    # that point one way need more of a shift than nearly orthonormal ones.
    size = jnp.abs(gram_bb).sum(axis=1).max()
    shift = 8 * jnp.finfo(gram_bb.dtype).eps * size
    shift = jnp.where(shift > 0, shift, 1)
    factor_bb = decompositions.cholesky(
        gram_bb + shift * jnp.eye(gram_bb.shape[0], dtype=shift.dtype)
    )
    return decompositions.invert_lower(factor_bb)
