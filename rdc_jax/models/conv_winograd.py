"""3x3 convolution by Winograd's minimal filtering, for CPU.

A patch of 3x3 outputs is a bilinear function of 5x5 inputs and the 3x3 kernel, and 25
products of linear combinations of the two are enough for it where the definition has
81 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
Over images and channels each of the 25 is a matrix product. The combinations come from
evaluating polynomials at the points 0, 1, -1, 2 and infinity; in float32 they cost
about one decimal digit, too much for shorter types.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from rdc_jax.models.chunks import chunk_length, chunked_map, chunked_sum

# Of patches in one direction: the inputs, the kernel and the outputs, by point.
_INPUTS = np.array(
    [
        [2, -1, -2, 1, 0],
        [0, -2, -1, 1, 0],
        [0, 2, -3, 1, 0],
        [0, -1, 0, 1, 0],
        [0, 2, -1, -2, 1],
    ],
    np.float32,
)
_KERNEL = np.array(
    [[3, 0, 0], [-3, -3, -3], [-1, 1, -1], [1, 2, 4], [0, 0, 6]], np.float32
) / np.float32(6)
_OUTPUTS = np.array([[1, 1, 1, 1, 0], [0, 1, -1, 2, 0], [0, 1, 1, 4, 1]], np.float32)

_POINTS, _SIDE = 5, 3

# Channels below which the combinations take longer than the products they spare.
_FEW = 32

# Bytes of combinations up to which a batch is filtered whole: XLA gives the last step
# of a loop's body, which writes into the loop's result, to one core only.
_WHOLE_BYTES = 32 << 20
# Otherwise, bytes that are alive at a time, for results and for the kernel's gradient,
# and how often the kernel's fit in: it must not be read again for a few images only.
_CHUNK_BYTES = 4 << 20
_GRADIENT_CHUNK_BYTES = 16 << 20
_CHUNK_KERNELS = 1

Grid = list[list[Array]]
"""One array for each pair of a row and a column."""


# Inside of a jitted function this is nothing; outside, it spares the dispatch and the
# compilation of hundreds of small operations.
_compiled = functools.partial(jax.jit, inline=True)


def fits(x: Array, kernel_kkio: Array, stride: int, padding: int) -> bool:
    """Whether a convolution can be computed so, and is worth the combinations."""
    *size, inputs, outputs = kernel_kkio.shape
    single = x.dtype == kernel_kkio.dtype == jnp.float32
    right = size == [3, 3] and stride == padding == 1
    return single and right and min(inputs, outputs) >= _FEW


@_compiled
def conv(x_bhwi: Array, kernel_kkio: Array) -> Array:
    """Convolve with stride 1 and padding 1.

    Args:
      x_bhwi: Images, channels last.
      kernel_kkio: The kernel, 3x3.

    Returns:
      The filtered images, ``[b, h, w, o]``.

    >>> conv(jnp.ones((1, 3, 3, 1)), jnp.ones((3, 3, 1, 1)))[0, :, :, 0].round()
    Array([[4., 6., 4.],
           [6., 9., 6.],
           [4., 6., 4.]], dtype=float32)
    """
    return _filtered(x_bhwi, _transform(_KERNEL, kernel_kkio), "hwi,io->hwo")


@_compiled
def images_gradient(grad_bhwo: Array, kernel_kkio: Array) -> Array:
    """Gradient of the images: a convolution with the kernel turned by half a turn."""
    turned = _transform(_KERNEL, kernel_kkio[::-1, ::-1])
    return _filtered(grad_bhwo, turned, "hwo,io->hwi")


@_compiled
def kernel_gradient(x_bhwi: Array, grad_bhwo: Array) -> Array:
    """Gradient of the kernel, ``[3, 3, i, o]``."""

    def of_chunk(x_bhwi: Array, grad_bhwo: Array) -> Array:
        grad = _transform(_OUTPUTS.T, _cut(grad_bhwo, padding=0))
        products = [
            [_flat(x).T @ _flat(g) for x, g in zip(*rows, strict=True)]
            for rows in zip(_patches(x_bhwi), grad, strict=True)
        ]
        return _stack(_transform(_KERNEL.T, products), 0, 1)

    chunk = _chunk(x_bhwi, grad_bhwo.shape[-1], _GRADIENT_CHUNK_BYTES)
    return chunked_sum(of_chunk, (x_bhwi, grad_bhwo), chunk)


def _filtered(x_bhwc: Array, kernel: Grid, product: str) -> Array:
    height, width = x_bhwc.shape[1:3]

    def one(x_hwc: Array) -> Array:
        products = [
            [jnp.einsum(product, x, k) for x, k in zip(*rows, strict=True)]
            for rows in zip(_patches(x_hwc), kernel, strict=True)
        ]
        y = _stack(_transform(_OUTPUTS, products), 1, 3)  # Rows, 3, columns, 3.
        y = y.reshape(_SIDE * y.shape[0], _SIDE * y.shape[2], -1)
        return y[:height, :width]

    features = kernel[0][0].size // x_bhwc.shape[-1]
    chunk = _chunk(x_bhwc, features, _CHUNK_BYTES, whole=_WHOLE_BYTES)
    return chunked_map(one, x_bhwc, chunk)


def _patches(x: Array) -> Grid:
    """Combinations of the 5x5 inputs that each 3x3 patch of outputs sees."""
    return _transform(_INPUTS, _cut(x, padding=1))


def _cut(x: Array, padding: int) -> Grid:
    """Pixels by their place in patches, three apart; outside of images are zeros.

    Args:
      x: One image, or a batch.
      padding: By how much a patch is larger than 3x3, on each side.
    """
    # The barrier keeps XLA from computing the images anew for each place.
    x = lax.optimization_barrier(x)
    patches = [-(-side // _SIDE) for side in x.shape[-3:-1]]
    edges = [
        (padding, padding + n * _SIDE - side)
        for n, side in zip(patches, x.shape[-3:-1], strict=True)
    ]
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [*edges, (0, 0)])
    rows, columns = ((n - 1) * _SIDE + 1 for n in patches)
    places = range(_SIDE + 2 * padding)
    return [
        [x[..., i : i + rows : _SIDE, j : j + columns : _SIDE, :] for j in places]
        for i in places
    ]


def _transform(matrix: np.ndarray, grid: Grid | Array) -> Grid:
    """Multiply both axes of a grid by a matrix."""
    columns = [[_combine(row, c) for row in matrix] for c in zip(*grid, strict=True)]
    return [[_combine(row, r) for row in matrix] for r in zip(*columns, strict=True)]


def _combine(weights: np.ndarray, arrays: Sequence[Array]) -> Array:
    """A weighted sum, without the terms that are nothing."""
    terms = [
        x if weight == 1 else weight * x
        for weight, x in zip(weights, arrays, strict=True)
        if weight
    ]
    return functools.reduce(jnp.add, terms)


def _stack(grid: Grid, row_axis: int, column_axis: int) -> Array:
    rows = [jnp.stack(row, column_axis - 1) for row in grid]
    return jnp.stack(rows, row_axis)


def _flat(x_bhwc: Array) -> Array:
    """All pixels in a row."""
    return x_bhwc.reshape(-1, x_bhwc.shape[-1])


def _chunk(x_bhwc: Array, features: int, budget: int, whole: int = 0) -> int:
    """How many images to take at a time.

    Args:
      x_bhwc: The images.
      features: Of the kernel, beside their channels.
      budget: Bytes of combinations for one time.
      whole: Bytes for which the batch is not taken apart at all.
    """
    images, height, width, channels = x_bhwc.shape
    tile = _POINTS**2 * channels * x_bhwc.dtype.itemsize
    patches = -(-height // _SIDE) * -(-width // _SIDE)
    if images * patches * tile <= whole:
        return images
    budget = max(budget, _CHUNK_KERNELS * tile * features)
    return chunk_length(images, patches * tile, budget)
