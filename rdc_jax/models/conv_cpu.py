"""Convolution on CPU: each of its three products in the way that is fastest there.

They are the result, the gradient of the images and the gradient of the kernel. XLA's
own convolution is slow on CPU for the last, and for all in its grouped form, which it
takes when ``vmap`` gives every task its own kernel. Where it serves well is a matter of
measurement (``benchmarks/train.py``).
"""

import functools
from collections.abc import Callable

import jax
from jax import Array
from jax.custom_batching import custom_vmap

from rdc_jax.models import conv_matmul, conv_winograd, conv_xla

# From (images, kernel), or from (gradient, kernel) to the gradient of the images.
Convolution = Callable[[Array, Array], Array]

# Rows of an image from which XLA's convolution is faster than patches.
_TALL = 8


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def conv(
    x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int, only_matmul: bool
) -> Array:
    """Convolve in the fastest way.

    Args:
      x_bhwi: Images, channels last.
      kernel_kkio: The kernel.
      stride: Step in both directions.
      padding: Zeros on each side.
      only_matmul: By patches, even where another way is faster.

    Returns:
      The filtered images.
    """
    if not only_matmul and conv_winograd.fits(x_bhwi, kernel_kkio, stride, padding):
        return conv_winograd.conv(x_bhwi, kernel_kkio)
    by_matmul, by_xla = (
        functools.partial(way.conv, stride=stride, padding=padding)
        for way in (conv_matmul, conv_xla)
    )
    way = _faster(by_matmul, by_xla, x_bhwi, kernel_kkio, stride, only_matmul)
    return way(x_bhwi, kernel_kkio)


def _forward(
    x_bhwi: Array, kernel_kkio: Array, stride: int, padding: int, only_matmul: bool
) -> tuple[Array, tuple[Array, Array]]:
    out = conv(x_bhwi, kernel_kkio, stride, padding, only_matmul)
    return out, (x_bhwi, kernel_kkio)


def _backward(
    stride: int,
    padding: int,
    only_matmul: bool,
    kept: tuple[Array, Array],
    grad_bhwo: Array,
) -> tuple[Array, Array]:
    x_bhwi, kernel_kkio = kept
    if not only_matmul and conv_winograd.fits(x_bhwi, kernel_kkio, stride, padding):
        return (
            conv_winograd.images_gradient(grad_bhwo, kernel_kkio),
            conv_winograd.kernel_gradient(x_bhwi, grad_bhwo),
        )
    images = jax.ShapeDtypeStruct(x_bhwi.shape, x_bhwi.dtype)
    by_matmul = functools.partial(
        conv_matmul.images_gradient, stride=stride, padding=padding, images=images
    )

    def by_xla(grad_bhwo: Array, kernel_kkio: Array) -> Array:
        forward = functools.partial(
            conv_xla.conv, kernel_kkio=kernel_kkio, stride=stride, padding=padding
        )
        return jax.linear_transpose(forward, images)(grad_bhwo)[0]

    way = _faster(by_matmul, by_xla, x_bhwi, kernel_kkio, stride, only_matmul)
    size = kernel_kkio.shape[0]
    kernel_grad = conv_matmul.kernel_gradient(x_bhwi, grad_bhwo, size, stride, padding)
    return way(grad_bhwo, kernel_kkio), kernel_grad.astype(kernel_kkio.dtype)


conv.defvjp(_forward, _backward)


def _faster(
    by_matmul: Convolution,
    by_xla: Convolution,
    x_bhwi: Array,
    kernel_kkio: Array,
    stride: int,
    only_matmul: bool,
) -> Convolution:
    """Patches, or XLA's convolution where that is faster and in its ungrouped form."""
    size, tall = kernel_kkio.shape[0], x_bhwi.shape[1] >= _TALL
    if only_matmul or not tall or size == 1 or (stride > 1 and size == 3):
        return by_matmul
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
