"""Feature rows of one task: which of them count, and their l2 normalisation."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, Num, UInt

_LARGE = 1e30


class Rows(NamedTuple):
    """Feature rows ready for computing.

    Attributes:
      feat: ``[n, d]``, at least float32; zero where ``valid`` is False.
      valid: ``[n]``, rows that take part: neither padding nor NaN or infinite.
      broken: ``[n]``, rows that are not padding but hold NaN or infinity.
    """

    feat: Float[Array, "n d"]
    valid: Bool[Array, " n"]
    broken: Bool[Array, " n"]


def prepare_rows(
    feat_nd: Num[ArrayLike, "n d"], mask_n: Bool[ArrayLike, " n"] | None = None
) -> Rows:
    """Separate rows that count from padding and from rows that are not finite.

    Half-precision input is computed in float32: a rank is decided by the last bits.

    Args:
      feat_nd: Features, any real dtype.
      mask_n: True on real rows, False on padding; ``None``: all real.

    Returns:
      The rows, with everything that does not count set to zero.

    Raises:
      TypeError: Features are complex.
    """
    feat_nd = jnp.asarray(feat_nd)
    if jnp.iscomplexobj(feat_nd):
        raise TypeError(f"features must be real numbers, got {feat_nd.dtype}")
    feat_nd = feat_nd.astype(compute_dtype(feat_nd))
    real_n = jnp.ones(feat_nd.shape[0], bool) if mask_n is None else jnp.asarray(mask_n)
    finite_n = jnp.isfinite(feat_nd).all(axis=1)
    valid_n = real_n & finite_n
    feat_nd = jnp.where(valid_n[:, None], feat_nd, 0)
    return Rows(feat_nd, valid_n, real_n & ~finite_n)


def task_rows(
    support: Num[ArrayLike, "s d"],
    query: Num[ArrayLike, "q d"],
    support_mask: Bool[ArrayLike, " s"] | None = None,
    query_mask: Bool[ArrayLike, " q"] | None = None,
) -> Rows:
    """Prepare the rows of a task: supports, then queries."""
    supports = prepare_rows(support, support_mask)
    queries = prepare_rows(query, query_mask)
    pairs = zip(supports, queries, strict=True)
    return Rows(*(jnp.concatenate(pair) for pair in pairs))


def compute_dtype(x: Num[ArrayLike, "..."]) -> jnp.dtype:
    """The dtype an input is computed in: its own if that is float64, else float32."""
    double = jnp.asarray(x).dtype == jnp.float64
    return jnp.dtype(jnp.float64 if double else jnp.float32)


def float_dtype(feat: Num[ArrayLike, "..."]) -> jnp.dtype:
    """The dtype results are returned in: the input's, float32 for integers."""
    dtype = jnp.asarray(feat).dtype
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.dtype(jnp.float32)


def l2_normalize(feat_nd: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Divide each row by its Euclidean norm; zero rows stay zero.

    Finite for rows of any magnitude, with a finite gradient (zero at zero rows).

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.core.rows import l2_normalize
      >>> l2_normalize(jnp.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
      [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    # Scaling by the largest entry keeps the squares inside the float range. The
    # result does not depend on the scale, so its gradient may be left out.
    scale_n1 = lax.stop_gradient(jnp.abs(feat_nd).max(axis=1, keepdims=True))
    # One over the largest floats is too small to be a number; a power of two is exact.
    shrink_n1 = jnp.where(scale_n1 > _LARGE, 2.0**-8, 1.0).astype(feat_nd.dtype)
    feat_nd = feat_nd * shrink_n1 / jnp.where(scale_n1 > 0, scale_n1 * shrink_n1, 1)
    squared_n1 = (feat_nd * feat_nd).sum(axis=1, keepdims=True)
    return jnp.where(
        squared_n1 > 0,
        feat_nd * lax.rsqrt(jnp.where(squared_n1 > 0, squared_n1, 1)),
        0,
    )


def equal_rows(feat_nd: Float[Array, "n d"]) -> Bool[Array, "n n"]:
    """Which rows are equal, entry for entry.

    Matrix products round equal rows differently depending on where they stand, which
    would break ties at random.

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.core.rows import equal_rows
      >>> equal_rows(jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0]]))[0].tolist()
      [True, False, True]
    """
    sums = row_hashes(feat_nd)
    return jnp.logical_and(*(sum_n[:, None] == sum_n[None, :] for sum_n in sums))


def row_hashes(
    feat_nd: Float[Array, "n d"],
) -> tuple[UInt[Array, " n"], UInt[Array, " n"]]:
    """Hash each row by what it holds, twice.

    Integer sums of the rows' bits do not depend on the order of summation; two of them
    make a 64-bit hash (128 for float64).
    """
    bits = jnp.uint64 if feat_nd.dtype == jnp.float64 else jnp.uint32
    feat_nd = jnp.where(feat_nd == 0, 0, feat_nd)  # -0.0 equals 0.0
    word_nd = lax.bitcast_convert_type(feat_nd, bits)
    place_d = jnp.arange(feat_nd.shape[1], dtype=bits) * jnp.asarray(0x9E3779B1, bits)
    # Words are stirred with their places before they are added: of plain products with
    # the places, many sums are equal where entries are, as in rows of zeros and ones.
    first_nd = stir(stir(word_nd ^ place_d[None, :], 0x85EBCA6B), 0xC2B2AE35)
    second_nd = stir(first_nd, 0x27D4EB2F)
    return first_nd.sum(axis=1, dtype=bits), second_nd.sum(axis=1, dtype=bits)


def stir(word: UInt[Array, "..."], odd: int) -> UInt[Array, "..."]:
    """Let each half of a word's bits depend on the other, reversibly."""
    half = 4 * word.dtype.itemsize
    word = (word ^ (word >> half)) * jnp.asarray(odd, word.dtype)
    return word ^ (word >> half)


def mask_pairs(
    pairs_nn: Float[Array, "n n"], rows: Rows, dtype: jax.typing.DTypeLike
) -> Float[Array, "n n"]:
    """Zero at pairs with padding, NaN at pairs with a row that is not finite."""
    valid_nn = rows.valid[:, None] & rows.valid[None, :]
    real_n = rows.valid | rows.broken
    real_nn = real_n[:, None] & real_n[None, :]
    filler_nn = jnp.where(real_nn, jnp.nan, 0.0)
    return jnp.where(valid_nn, pairs_nn, filler_nn).astype(dtype)
