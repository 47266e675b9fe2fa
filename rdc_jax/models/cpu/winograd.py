"""3x3 convolution by Winograd's minimal filtering, for CPU.

A tile of 3x3 outputs ``y`` is a bilinear function of the 5x5 inputs ``d`` under it and
the 3x3 kernel ``g``. Taken as products of polynomials, and those as products of their
values at 5 points, it is (Lavin and Gray, "Fast Algorithms for Convolutional Neural
Networks", CVPR 2016, Eq. 8)

    y = A' [(G g G') * (B' d B)] A        with the points 0, 1, -1, 2, infinity,

25 products where the definition has 81. Over tiles and channels each of the 25 is one
matrix product. In float32 the combinations cost about one decimal digit, too much for
shorter types.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from rdc_jax.models.cpu.chunks import chunk_length, chunked_map, chunked_sum

_B = np.array(  # B' of the paper: from 5 inputs to 5 points.
    [
        [2, -1, -2, 1, 0],
        [0, -2, -1, 1, 0],
        [0, 2, -3, 1, 0],
        [0, -1, 0, 1, 0],
        [0, 2, -1, -2, 1],
    ],
    np.float32,
)
_G = np.array(  # From 3 weights of the kernel to 5 points.
    [[3, 0, 0], [-3, -3, -3], [-1, 1, -1], [1, 2, 4], [0, 0, 6]], np.float32
) / np.float32(6)
_A = np.array(  # A' of the paper: from 5 points to 3 outputs.
    [[1, 1, 1, 1, 0], [0, 1, -1, 2, 0], [0, 1, 1, 4, 1]], np.float32
)

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
"""Rows and columns of a tile, or of points, with all tiles' values in each array.

Lists, because the combinations are sums of a few arrays, most with weight 1 or -1: XLA
fuses these, and would compute a product with a mostly empty matrix in full.
"""


# Inside of a jitted function this is nothing; outside, it spares the dispatch and the
# compilation of hundreds of small operations.
_compiled = functools.partial(jax.jit, inline=True)


def fits(x: Array, kernel_kkio: Array, stride: int, padding: int) -> bool:
    """Whether a convolution can be computed so, and is worth the combinations."""
    *size, inputs, outputs = kernel_kkio.shape
    is_float32 = x.dtype == kernel_kkio.dtype == jnp.float32
    is_3x3 = size == [3, 3] and stride == padding == 1
    return is_float32 and is_3x3 and min(inputs, outputs) >= _FEW


@_compiled
def conv(x_bhwi: Array, kernel_kkio: Array) -> Array:
    """Convolve with stride 1 and padding 1.

    >>> conv(jnp.ones((1, 3, 3, 1)), jnp.ones((3, 3, 1, 1)))[0, :, :, 0].round()
    Array([[4., 6., 4.],
           [6., 9., 6.],
           [4., 6., 4.]], dtype=float32)
    """
    return _filtered(x_bhwi, _transform(_G, kernel_kkio), "tui,io->tuo")


@_compiled
def images_gradient(grad_bhwo: Array, kernel_kkio: Array) -> Array:
    """Gradient of the images: a convolution with the kernel turned by half a turn."""
    turned = _transform(_G, kernel_kkio[::-1, ::-1])
    return _filtered(grad_bhwo, turned, "tuo,io->tui")


@_compiled
def kernel_gradient(x_bhwi: Array, grad_bhwo: Array) -> Array:
    """Gradient of the kernel, ``[3, 3, i, o]``: the transpose of ``conv`` in it."""

    def of_chunk(x_bhwi: Array, grad_bhwo: Array) -> Array:
        grads = _transform(_A.T, _cut(grad_bhwo, edge=0))  # 5 x 5 of [b, t, u, o].
        inputs = _transform(_B, _cut(x_bhwi, edge=1))  # 5 x 5 of [b, t, u, i].
        products = [  # 5 x 5 of [i, o]: one sum over all tiles of the chunk a point.
            [_flat(x).T @ _flat(g) for x, g in zip(*rows, strict=True)]
            for rows in zip(inputs, grads, strict=True)
        ]
        return _stack(_transform(_G.T, products), 0, 1)

    chunk = _chunk(x_bhwi, grad_bhwo.shape[-1], _GRADIENT_CHUNK_BYTES)
    return chunked_sum(of_chunk, (x_bhwi, grad_bhwo), chunk)


def _filtered(x_bhwc: Array, kernel: Grid, product: str) -> Array:
    """Filter by a kernel that is transformed: 5 x 5 of ``[i, o]``.

    Args:
      x_bhwc: Images, or gradients of the result.
      kernel: The kernel at each point.
      product: Einsum of tiles ``tu`` at one point and the kernel there.
    """
    height, width = x_bhwc.shape[1:3]

    def one(x_hwc: Array) -> Array:
        inputs = _transform(_B, _cut(x_hwc, edge=1))  # 5 x 5 of [t, u, c].
        products = [
            [jnp.einsum(product, x, k) for x, k in zip(*rows, strict=True)]
            for rows in zip(inputs, kernel, strict=True)
        ]
        # 3 x 3 of [t, u, o] become [t, 3, u, 3, o]: each pixel beside its neighbours.
        y = _stack(_transform(_A, products), 1, 3)
        y = y.reshape(_SIDE * y.shape[0], _SIDE * y.shape[2], -1)
        return y[:height, :width]  # The last tiles may reach over the edge.

    features = kernel[0][0].size // x_bhwc.shape[-1]
    chunk = _chunk(x_bhwc, features, _CHUNK_BYTES, whole=_WHOLE_BYTES)
    return chunked_map(one, x_bhwc, chunk)


def _cut(x: Array, edge: int) -> Grid:
    """Cut images into tiles: in row i and column j is that pixel of every tile.

    Tiles begin 3 pixels apart, so this pixel of all of them is one strided view,
    ``x[i::3, j::3]``: ``[t, u, c]`` with ``t = ceil(h / 3)`` and ``u = ceil(w / 3)``.

    Args:
      x: One image, or a batch; zeros are taken to be around it.
      edge: By how much a tile is larger than 3x3, on each side: 1 for the inputs of
        3x3 outputs.
    """
    # The barrier keeps XLA from computing the images anew for each view.
    x = lax.optimization_barrier(x)
    sides = x.shape[-3:-1]
    tiles = [-(-side // _SIDE) for side in sides]
    around = [
        (edge, edge + n * _SIDE - side) for n, side in zip(tiles, sides, strict=True)
    ]
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [*around, (0, 0)])
    rows, columns = ((n - 1) * _SIDE + 1 for n in tiles)  # From first to last tile.
    places = range(_SIDE + 2 * edge)
    return [
        [x[..., i : i + rows : _SIDE, j : j + columns : _SIDE, :] for j in places]
        for i in places
    ]


def _transform(matrix: np.ndarray, grid: Grid | Array) -> Grid:
    """``M g M'`` of a grid g: the matrix on its columns, then on its rows."""
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
    """One array of a grid, whose rows and columns are these axes of the result."""
    rows = [jnp.stack(row, column_axis - 1) for row in grid]
    return jnp.stack(rows, row_axis)


def _flat(x_btuc: Array) -> Array:
    """All tiles in a row, ``[b * t * u, c]``."""
    return x_btuc.reshape(-1, x_btuc.shape[-1])


def _chunk(x_bhwc: Array, features: int, budget: int, whole: int = 0) -> int:
    """How many images to take at a time.

    Args:
      x_bhwc: The images.
      features: Output channels of the kernel.
      budget: Bytes of combinations for one time.
      whole: A batch that needs no more bytes than this is not split.
    """
    images, height, width, channels = x_bhwc.shape
    tile = _POINTS**2 * channels * x_bhwc.dtype.itemsize
    tiles = -(-height // _SIDE) * -(-width // _SIDE)
    if images * tiles * tile <= whole:
        return images
    budget = max(budget, _CHUNK_KERNELS * tile * features)
    return chunk_length(images, tiles * tile, budget)
