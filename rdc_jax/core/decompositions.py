"""Decompositions of small matrices that are safe to batch.

On CPU, XLA spreads a batch of LAPACK calls over its thread pool and waits for them in a
thread of that pool. Where as many such calls run at once as there are threads, say two
on two cores, all of them wait for ever. Here a batch is a loop of single calls, which
wait for nothing; the loops over shares of the batch keep the cores busy. Other backends
get the whole batch at once.
"""

import functools
import itertools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jaxtyping import Float

_MOST_LOOPS = 8


def _looped(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``fn`` a loop of single calls under ``vmap`` on CPU."""
    wrapped = custom_vmap(fn)

    @wrapped.def_vmap
    def rule(axis_size: int, in_batched: list[bool], *args: Array) -> tuple[Any, Any]:
        args = tuple(
            arg if batched else jnp.broadcast_to(arg, (axis_size, *arg.shape))
            for arg, batched in zip(args, in_batched, strict=True)
        )
        out = lax.platform_dependent(
            *args,
            cpu=lambda *args: _loops(wrapped, axis_size, args),
            default=jax.vmap(fn),
        )
        return out, jax.tree.map(lambda _: True, out)

    return functools.wraps(fn)(wrapped)


def _loops(fn: Callable[..., Any], size: int, args: tuple[Array, ...]) -> Any:
    """Independent loops, one a core, over shares of the batch."""
    count = min(os.cpu_count() or 1, _MOST_LOOPS, size)
    bounds = [size * i // count for i in range(count + 1)]
    shares = [
        lax.map(lambda one: fn(*one), tuple(arg[start:stop] for arg in args))
        for start, stop in itertools.pairwise(bounds)
    ]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *shares)


@_looped
def eigh(matrix_bb: Float[Array, "b b"]) -> tuple[Array, Array]:
    """Eigenvalues in ascending order and eigenvectors of a symmetric matrix.

    >>> eigh(jnp.diag(jnp.array([2.0, 1.0])))[0].tolist()
    [1.0, 2.0]
    """
    value_b, vector_bb = jnp.linalg.eigh(matrix_bb)
    return value_b, vector_bb


@_looped
def cholesky(matrix_bb: Float[Array, "b b"]) -> Float[Array, "b b"]:
    """Lower factor L of a positive definite matrix: L Lᵀ."""
    return jnp.linalg.cholesky(matrix_bb)


def invert_lower(factor_bb: Float[Array, "b b"]) -> Float[Array, "b b"]:
    """The inverse of a lower triangular matrix, by matrix products.

    Blocks on the diagonal are inverted in pairs, of twice the size each time:
    the inverse of [[A, 0], [B, C]] is [[A⁻¹, 0], [-C⁻¹ B A⁻¹, C⁻¹]].

    >>> invert_lower(jnp.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    b = factor_bb.shape[0]
    full = 1 << (b - 1).bit_length()
    padded_ff = jnp.pad(factor_bb, (0, full - b))
    value_f = jnp.pad(jnp.diagonal(factor_bb), (0, full - b), constant_values=1)
    inverse_kss = 1 / value_f[:, None, None]
    while (size := inverse_kss.shape[1]) < full:
        k = full // (2 * size)
        below_ksks = padded_ff.reshape(k, 2, size, k, 2, size)[:, 1, :, :, 0, :]
        # The diagonal of the blocks, by a mask: a gather would be slow on a TPU.
        same_k1k1 = jnp.eye(k, dtype=bool)[:, None, :, None]
        below_kss = jnp.where(same_k1k1, below_ksks, 0).sum(axis=2)
        first_kss, second_kss = inverse_kss[0::2], inverse_kss[1::2]
        corner_kss = -_matmul(second_kss, _matmul(below_kss, first_kss))
        rows = ([first_kss, jnp.zeros_like(first_kss)], [corner_kss, second_kss])
        inverse_kss = jnp.concatenate(
            [jnp.concatenate(row, axis=2) for row in rows], axis=1
        )
    return inverse_kss[0, :b, :b]


def _matmul(left_kss: Array, right_kss: Array) -> Array:
    return jnp.matmul(left_kss, right_kss, precision=lax.Precision.HIGHEST)
