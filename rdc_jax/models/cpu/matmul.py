"""Convolution by matrix products, for CPU.

The patches under the kernel are copied side by side and multiplied with the kernel in
one product. They are k * k times the size of the images. They are therefore made for a
few images at a time, and made again in the backward pass rather than kept.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from rdc_jax.models.cpu.chunks import chunk_length, chunked_map, chunked_sum

# Bytes of patches that are alive at a time: a few images in the last-level cache.
_CHUNK_BYTES = 4 << 20
# A kernel that is large beside the patches must not be read again for each chunk.
_CHUNK_KERNELS = 2
# Rows of an image from which it pays to shift both operands of the kernel's gradient.
_VERY_TALL = 32


def conv(x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int) -> Array:
    """Convolve by matrix products.

    >>> conv(jnp.ones((1, 4, 4, 3)), jnp.ones((3, 3, 3, 8)), 2, 1).shape
    (1, 2, 2, 8)
    """
    one = functools.partial(
        _conv_image, kernel_kkio=kernel_kkio, stride=stride, padding=padding
    )
    return _map_images(one, x_bhwi, x_bhwi, kernel_kkio, stride)


def images_gradient(
    grad_bhwo: Array,
    kernel_kkio: Array,
    stride: int,
    padding: int,
    images: jax.ShapeDtypeStruct,
) -> Array:
    """Gradient of the images, whose shape and dtype are ``images``."""
    image = jax.ShapeDtypeStruct(images.shape[1:], images.dtype)
    conv_image = functools.partial(
        _conv_image, kernel_kkio=kernel_kkio, stride=stride, padding=padding
    )

    # Image by image: linear_transpose of the loop over them fails in JAX 0.8 and 0.9.
    def one(grad_hwo: Array) -> Array:
        return jax.linear_transpose(conv_image, image)(grad_hwo)[0]

    return _map_images(one, grad_bhwo, images, kernel_kkio, stride)


def kernel_gradient(
    x_bhwi: Array, grad_bhwo: Array, size: int, stride: int, padding: int
) -> Array:
    """Gradient of the kernel, ``[k, k, i, o]`` for ``size`` k, in float32."""
    of_chunk = functools.partial(
        _chunk_gradient, size=size, stride=stride, padding=padding
    )
    chunk = _chunk(x_bhwi, size, stride, grad_bhwo.shape[-1])
    return chunked_sum(of_chunk, (x_bhwi, grad_bhwo), chunk)


def _conv_image(x_hwi: Array, kernel_kkio: Array, stride: int, padding: int) -> Array:
    size, features = kernel_kkio.shape[0], kernel_kkio.shape[-1]
    patches_hwp = _patches(x_hwi, size, stride, padding)
    return patches_hwp @ kernel_kkio.reshape(-1, features)


def _map_images(
    one: Callable[[Array], Array],
    batch: Array,
    images: Array | jax.ShapeDtypeStruct,
    kernel_kkio: Array,
    stride: int,
) -> Array:
    """``one`` for each of a batch, a few at a time if it makes patches of images."""
    size, features = kernel_kkio.shape[0], kernel_kkio.shape[-1]
    if size == 1:
        return jax.vmap(one)(batch)
    return chunked_map(one, batch, _chunk(images, size, stride, features))


def _patches(x_hwi: Array, size: int, stride: int, padding: int) -> Array:
    """What the kernel sees at each position: ``[h2, w2, k * k * i]``."""
    edge = (padding, padding)
    x_hwi = jnp.pad(x_hwi, (edge, edge, (0, 0)))
    for axis in (1, 0):  # Columns first: the later copies are then of longer runs.
        x_hwi = jnp.concatenate(_shifts(x_hwi, size, stride, axis), -1)
    return x_hwi


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


def _chunk(
    x_bhwi: Array | jax.ShapeDtypeStruct, size: int, stride: int, features: int
) -> int:
    """How many images to make patches of at a time."""
    images, height, width, channels = x_bhwi.shape
    patch = size * size * channels * x_bhwi.dtype.itemsize
    image = (height // stride) * (width // stride) * patch
    budget = max(_CHUNK_BYTES, _CHUNK_KERNELS * patch * features)
    return chunk_length(images, image, budget)
