"""Max-pooling whose gradient is quick on every backend."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdc_jax.models.cpu.chunks import chunked_map

# How many images the forward pass takes at a time on CPU.
_IMAGES = 4


class _Window(NamedTuple):
    size: int
    stride: int
    padding: int


def max_pool(
    x_bhwc: Float[Array, "b h w c"], *, size: int, stride: int, padding: int = 0
) -> Float[Array, "b h2 w2 c"]:
    """Maximum over square windows, as torch's ``max_pool2d``.

    ``lax.reduce_window`` gives the same values, but its gradient scatters, which takes
    longer on CPU than a convolution. Here the winner's place in its window is kept, and
    each input gathers from the few windows it is in. Among equals the first in row
    order takes the gradient, as in torch.

    Args:
      x_bhwc: Images, channels last.
      size: Side of the window.
      stride: Step in both directions.
      padding: Rows and columns of minus infinity on each side.

    Returns:
      The maxima.

    >>> max_pool(jnp.arange(16.0).reshape(1, 4, 4, 1), size=2, stride=2)[0, :, :, 0]
    Array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    return _pool(x_bhwc, _Window(size, stride, padding), x_bhwc.shape[1:3])


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _pool(x_bhwc: Array, window: _Window, sides: tuple[int, int]) -> Array:
    return jax.vmap(lambda x_hwc: _maxima(x_hwc, window)[0])(x_bhwc)


def _maxima(x_hwc: Array, window: _Window) -> tuple[Array, Array]:
    """The maxima, and the place in its window from which each one comes."""
    size, stride, padding = window
    edge = (padding, padding)
    x_hwc = jnp.pad(x_hwc, (edge, edge, (0, 0)), constant_values=-jnp.inf)
    last_h, last_w = (side - size + 1 for side in x_hwc.shape[:2])
    shifted = [
        x_hwc[i : i + last_h : stride, j : j + last_w : stride]
        for i, j in np.ndindex(size, size)
    ]
    best, place = shifted[0], jnp.zeros(shifted[0].shape, jnp.int8)
    for i, x in enumerate(shifted[1:], 1):
        wins = (x > best) | jnp.isnan(x)
        best, place = jnp.where(wins, x, best), jnp.where(wins, jnp.int8(i), place)
    return best, place


def _forward(
    x_bhwc: Array, window: _Window, sides: tuple[int, int]
) -> tuple[Array, Array]:
    # XLA does not fuse across a loop. On CPU it would otherwise make the comparisons
    # anew for each use of the places in the backward pass. On accelerators a loop
    # would leave them idle, and bring together a batch that is split over devices.
    size = _IMAGES if jax.default_backend() == "cpu" else len(x_bhwc)
    return chunked_map(lambda x_hwc: _maxima(x_hwc, window), x_bhwc, size)


def _backward(
    window: _Window, sides: tuple[int, int], place: Array, grad: Array
) -> tuple[Array]:
    # Each input lies under at most `overlap` windows in a row and in a column. From
    # each of them it takes the gradient if it is the place that won there: gathers
    # from [b, h2, w2, c] to [b, h, w, c], and no scatter.
    total = jnp.zeros((), grad.dtype)
    overlap = -(-window.size // window.stride)
    for back in np.ndindex(overlap, overlap):
        (row, in_row), (column, in_column) = (
            _covering(side, out, window, b)
            for side, out, b in zip(sides, grad.shape[1:3], back, strict=True)
        )
        both = (in_row[:, None] >= 0) & (in_column >= 0)
        here = np.where(both, in_row[:, None] * window.size + in_column, -1)
        came_from = place[:, row][:, :, column]
        mine = came_from == here.astype(np.int8)[None, :, :, None]
        total += jnp.where(mine, grad[:, row][:, :, column], 0)
    return (total,)


_pool.defvjp(_forward, _backward)


def _covering(
    side: int, out: int, window: _Window, back: int
) -> tuple[np.ndarray, np.ndarray]:
    """The window that lies over each input, ``back`` before the last one that does.

    Along one axis: the window's index, and the input's offset in it, -1 where there is
    no such window.
    """
    position = np.arange(side) + window.padding
    index = position // window.stride - back
    offset = position - index * window.stride
    exists = (index >= 0) & (index < out) & (offset < window.size)
    return np.clip(index, 0, out - 1), np.where(exists, offset, -1)
