"""Convolution by matrix products, for CPU.

XLA's convolution is good on CPU in the forward direction and for the gradient of the
images, but not for the gradient of the kernel, nor in its grouped form, which it takes
when ``vmap`` gives every task its own kernel. Here the patches under the kernel are
copied side by side and multiplied with the kernel in one product.

The patches are k * k times the size of the images, and to write that much fresh memory
costs more than the product. They are therefore made for a few images at a time, in a
loop that reuses memory the size of a cache, and made again in the backward pass
rather than kept.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap

from rdc_jax.models import conv_xla

# From (images, kernel), or from (gradient, kernel) to the gradient of the images.
Convolution = Callable[[Array, Array], Array]

# Bytes of patches that are alive at a time: a few images in the last-level cache.
_CHUNK_BYTES = 8 << 20
# A kernel that is large beside the patches must not be read again for each chunk.
_CHUNK_KERNELS = 2
# Rows of an image from which XLA's convolution is faster than patches.
_TALL = 8
# Rows of an image from which it pays to shift both operands of the kernel's gradient.
_VERY_TALL = 32


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def conv(
    x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int, always: bool
) -> Array:
    """Convolve by matrix products.

    Args:
      x_bhwi: Images, channels last.
      kernel_kkio: The kernel.
      stride: Step in both directions.
      padding: Zeros on each side.
      always: Never call XLA's convolution, not even where it is faster.

    Returns:
      The filtered images.
    """
    way = _fastest(lambda f: f, x_bhwi, kernel_kkio, stride, padding, always)
    return way(x_bhwi, kernel_kkio)


def _forward(
    x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int, always: bool
) -> tuple[Array, tuple[Array, Array]]:
    out = conv(x_bhwi, kernel_kkio, stride, padding, always)
    return out, (x_bhwi, kernel_kkio)


def _backward(
    stride: int,
    padding: int,
    always: bool,
    kept: tuple[Array, Array],
    grad_bhwo: Array,
) -> tuple[Array, Array]:
    x_bhwi, kernel_kkio = kept
    images = jax.ShapeDtypeStruct(x_bhwi.shape, x_bhwi.dtype)

    def transposed(forward: Convolution) -> Convolution:
        return lambda grad, kernel: jax.linear_transpose(
            lambda x: forward(x, kernel), images
        )(grad)[0]

    way = _fastest(transposed, x_bhwi, kernel_kkio, stride, padding, always)
    size = kernel_kkio.shape[0]
    kernel_grad = _kernel_gradient(x_bhwi, grad_bhwo, size, stride, padding)
    return way(grad_bhwo, kernel_kkio), kernel_grad.astype(kernel_kkio.dtype)


conv.defvjp(_forward, _backward)


def _fastest(
    transform: Callable[[Convolution], Convolution],
    x_bhwi: Array,
    kernel_kkio: Array,
    stride: int,
    padding: int,
    always: bool,
) -> Convolution:
    """The quicker way for these shapes, by measurement."""
    size, tall = kernel_kkio.shape[0], x_bhwi.shape[1] >= _TALL
    by_matmul = transform(functools.partial(_by_matmul, stride=stride, padding=padding))
    if always or not tall or size == 1 or (stride > 1 and size == 3):
        return by_matmul
    by_xla = transform(functools.partial(conv_xla.conv, stride=stride, padding=padding))
    way = custom_vmap(by_xla)

    @way.def_vmap
    def rule(
        axis_size: int, in_batched: list[bool], images: Array, kernel: Array
    ) -> tuple[Array, bool]:
        del axis_size
        axes = [0 if batched else None for batched in in_batched]
        kernels_differ = in_batched[1]
        return jax.vmap(by_matmul if kernels_differ else by_xla, axes)(
            images, kernel
        ), True

    return way


def _by_matmul(x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int) -> Array:
    size, features = kernel_kkio.shape[0], kernel_kkio.shape[-1]
    kernel_po = kernel_kkio.reshape(-1, features)

    def one(x_hwi: Array) -> Array:
        return _patches(x_hwi, size, stride, padding) @ kernel_po

    chunk = _chunk(x_bhwi, size, stride, features)
    if size == 1 or chunk == len(x_bhwi):
        return jax.vmap(one)(x_bhwi)
    return lax.map(one, x_bhwi, batch_size=chunk)


def _patches(x_hwi: Array, size: int, stride: int, padding: int) -> Array:
    """What the kernel sees at each position: ``[h2, w2, k * k * i]``."""
    edge = (padding, padding)
    x_hwi = jnp.pad(x_hwi, (edge, edge, (0, 0)))
    for axis in (1, 0):  # Columns first: the later copies are then of longer runs.
        x_hwi = jnp.concatenate(_shifts(x_hwi, size, stride, axis), -1)
    return x_hwi


def _kernel_gradient(
    x_bhwi: Array, grad_bhwo: Array, size: int, stride: int, padding: int
) -> Array:
    def of_chunk(pair: tuple[Array, Array]) -> Array:
        return _chunk_gradient(*pair, size, stride, padding)

    pair = (x_bhwi, grad_bhwo)
    chunk = _chunk(x_bhwi, size, stride, grad_bhwo.shape[-1])
    whole = len(x_bhwi) // chunk * chunk
    if whole == chunk == len(x_bhwi):
        return of_chunk(pair)
    chunks = jax.tree.map(lambda a: a[:whole].reshape(-1, chunk, *a.shape[1:]), pair)
    rest = jax.tree.map(lambda a: a[whole:], pair)
    total, _ = lax.scan(
        lambda total, pair: (total + of_chunk(pair), None), of_chunk(rest), chunks
    )
    return total


def _chunk_gradient(
    x_bhwi: Array, grad_bhwo: Array, size: int, stride: int, padding: int
) -> Array:
    """Gradient of the kernel, ``[k, k, i, o]`` (rows ``k``, columns ``j``), in float32.

    Channels come first in the patches, because the product wants them transposed.
    """
    edge = (padding, padding)
    x_ibhw = jnp.pad(x_bhwi.transpose(3, 0, 1, 2), ((0, 0), (0, 0), edge, edge))
    # The barrier keeps XLA from making each of the k * k copies out of x itself.
    x_jibhw = lax.optimization_barrier(jnp.stack(_shifts(x_ibhw, size, stride, 3)))
    product = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)
    if stride == 1 and x_bhwi.shape[1] >= _VERY_TALL:
        # Columns shifted in one operand and rows in the other give every pair.
        around = [((0, 0), (k, size - 1 - k), (0, 0), (0, 0)) for k in range(size)]
        grad_bhwko = jnp.stack([jnp.pad(grad_bhwo, rows) for rows in around], 3)
        return product("jibhw,bhwko->kjio", x_jibhw, grad_bhwko)
    x_kjibhw = jnp.stack(_shifts(x_jibhw, size, stride, 3))
    return product("kjibhw,bhwo->kjio", x_kjibhw, grad_bhwo)


def _shifts(x: Array, size: int, stride: int, axis: int) -> list[Array]:
    """The strided views along an axis that the offsets in a window see."""
    last = x.shape[axis] - size
    return [lax.slice_in_dim(x, i, i + last + 1, stride, axis) for i in range(size)]


def _chunk(x_bhwi: Array, size: int, stride: int, features: int) -> int:
    """How many images to make patches of at a time."""
    images, height, width, channels = x_bhwi.shape
    patch = size * size * channels * x_bhwi.dtype.itemsize
    image = (height // stride) * (width // stride) * patch
    budget = max(_CHUNK_BYTES, _CHUNK_KERNELS * patch * features)
    most = max(1, min(images, budget // max(image, 1)))
    # A divisor, if one is near, saves the compilation of a remainder.
    return next((n for n in range(most, most // 2, -1) if images % n == 0), most)
