"""Convolution on CPU: each of its three products in the way that is fastest there.

They are the result, the gradient of the images and the gradient of the kernel. XLA's
own convolution is slow on CPU for the last, and for all in its grouped form, which it
takes when ``vmap`` gives every task its own kernel. Where it serves well is a matter of
measurement (``benchmarks/train.py``).
"""

import functools
from collections.abc import Callable

import jax
from jax import Array, lax
from jax.custom_batching import custom_vmap

from rdc_jax.models.cpu import matmul, winograd

# From (images, kernel), or from (gradient, kernel) to the gradient of the images.
Product = Callable[[Array, Array], Array]

# Rows of an image from which XLA's convolution is faster than patches.
_TALL = 8


def xla_conv(x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int) -> Array:
    """XLA's own convolution, of channels-last images."""
    return lax.conv_general_dilated(
        x_bhwi,
        kernel_kkio,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def conv(x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int) -> Array:
    """Convolve images with a square kernel and equal padding on the four sides.

    >>> import jax.numpy as jnp
    >>> conv(jnp.ones((1, 4, 4, 3)), jnp.ones((3, 3, 3, 8)), 2, 1).shape
    (1, 2, 2, 8)
    """
    return _result(x_bhwi, kernel_kkio, stride, padding)


def _result(x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int) -> Array:
    if winograd.fits(x_bhwi, kernel_kkio, stride, padding):
        return winograd.conv(x_bhwi, kernel_kkio)
    by_matmul = functools.partial(matmul.conv, stride=stride, padding=padding)
    by_xla = functools.partial(xla_conv, stride=stride, padding=padding)
    if _patches_are_faster(x_bhwi, kernel_kkio, stride):
        return by_matmul(x_bhwi, kernel_kkio)
    return _never_grouped(by_xla, by_matmul)(x_bhwi, kernel_kkio)


def _forward(
    x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int
) -> tuple[Array, tuple[Array, Array]]:
    # Not by ``conv``: a gradient can then be differentiated forwards.
    return _result(x_bhwi, kernel_kkio, stride, padding), (x_bhwi, kernel_kkio)


def _backward(
    stride: int, padding: int, kept: tuple[Array, Array], grad_bhwo: Array
) -> tuple[Array, Array]:
    x_bhwi, kernel_kkio = kept
    if winograd.fits(x_bhwi, kernel_kkio, stride, padding):
        return (
            winograd.images_gradient(grad_bhwo, kernel_kkio),
            winograd.kernel_gradient(x_bhwi, grad_bhwo),
        )
    images = jax.ShapeDtypeStruct(x_bhwi.shape, x_bhwi.dtype)
    by_matmul = functools.partial(
        matmul.images_gradient, stride=stride, padding=padding, images=images
    )

    def by_xla(grad_bhwo: Array, kernel_kkio: Array) -> Array:
        forward = functools.partial(
            xla_conv, kernel_kkio=kernel_kkio, stride=stride, padding=padding
        )
        return jax.linear_transpose(forward, images)(grad_bhwo)[0]

    if _patches_are_faster(x_bhwi, kernel_kkio, stride):
        way: Product = by_matmul
    else:
        way = _never_grouped(by_xla, by_matmul)
    size = kernel_kkio.shape[0]
    kernel_grad = matmul.kernel_gradient(x_bhwi, grad_bhwo, size, stride, padding)
    return way(grad_bhwo, kernel_kkio), kernel_grad.astype(kernel_kkio.dtype)


conv.defvjp(_forward, _backward)


def _patches_are_faster(x_bhwi: Array, kernel_kkio: Array, stride: int) -> bool:
    size, is_tall = kernel_kkio.shape[0], x_bhwi.shape[1] >= _TALL
    return not is_tall or size == 1 or (stride > 1 and size == 3)


def _never_grouped(by_xla: Product, by_matmul: Product) -> Product:
    """XLA's way, or patches where ``vmap`` gives each task a kernel of its own."""
    way = custom_vmap(by_xla)

    @way.def_vmap
    def rule(
        axis_size: int, in_batched: list[bool], images: Array, kernel: Array
    ) -> tuple[Array, bool]:
        del axis_size
        axes = [0 if batched else None for batched in in_batched]
        kernels_differ = in_batched[1]
        one = by_matmul if kernels_differ else by_xla
        return jax.vmap(one, axes)(images, kernel), True

    return way
