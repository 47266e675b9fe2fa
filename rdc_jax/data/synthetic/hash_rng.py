"""The family's random numbers: pure integer hashes of a seed.

A picture needs ten or more independent draws. With ``jax.random`` each of them costs
about a second of compilation on CPU, and the pictures would change with JAX's default
generator. A 32-bit hash costs nothing, is the same on every backend and release, and
is random enough to the eye.
"""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, UInt32

Seed = UInt32[Array, ""]


def derive(seed: ArrayLike, *indices: ArrayLike) -> UInt32[Array, "..."]:
    """A seed for each index, or tuple of indices, under ``seed``.

    Examples:
      >>> (derive(7, np.arange(5)) % 100).tolist()
      [8, 6, 31, 66, 67]
    """
    state = _bits(seed)
    for index in indices:
        state = _scramble(state * np.uint32(0x9E3779B1) + _scramble(_bits(index)))
    return state


def fork(seed: Seed, count: int) -> list[Seed]:
    """``count`` independent seeds, to be unpacked."""
    return [derive(seed, i) for i in range(count)]


def uniform(seed: ArrayLike, *indices: ArrayLike) -> Float[Array, "..."]:
    """A number in [0, 1) for each tuple of indices."""
    return (derive(seed, *indices) >> 8).astype(jnp.float32) * np.float32(2**-24)


def uniforms(seed: Seed, **ranges: tuple[float, float]) -> SimpleNamespace:
    """One number from each range, under the range's name.

    Examples:
      >>> pose = uniforms(derive(7), angle=(-1.0, 1.0), scale=(0.5, 2.0))
      >>> pose.scale.shape
      ()
    """
    draw = uniform(seed, np.arange(len(ranges)))
    return SimpleNamespace(
        **{
            name: low + (high - low) * draw[i]
            for i, (name, (low, high)) in enumerate(ranges.items())
        }
    )


def bells(seed: Seed, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Bell-shaped numbers (triangular) of zero mean and unit deviation."""
    bits = derive(seed, np.arange(np.prod(shape)).reshape(shape))
    halves = (bits >> 16) + (bits & np.uint32(0xFFFF))
    return (halves.astype(jnp.float32) * np.float32(2**-16) - 1.0) * np.float32(6**0.5)


def _bits(value: ArrayLike) -> UInt32[Array, "..."]:
    value = jnp.asarray(value)
    if value.dtype == jnp.uint32:
        return value
    # Through int32, so that negative lattice indices wrap around alike everywhere.
    return value.astype(jnp.int32).astype(jnp.uint32)


def _scramble(bits: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """The finaliser of MurmurHash3: every input bit reaches every output bit."""
    bits = (bits ^ (bits >> 16)) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
