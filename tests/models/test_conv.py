"""The convolution of each layer on CPU, and the max-pool, against XLA's own."""

import compiling
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from rdc_jax.models.conv import conv
from rdc_jax.models.cpu import matmul
from rdc_jax.models.cpu.pool import max_pool

# (batch, side, inputs, outputs, kernel, stride): the network's layers, and odd sizes.
LAYERS = [
    (3, 20, 3, 8, 7, 2),
    (9, 21, 8, 8, 3, 1),
    (3, 21, 8, 16, 3, 2),
    (3, 21, 8, 16, 1, 2),
    (4, 6, 8, 8, 3, 1),
    (2, 5, 8, 16, 3, 2),
    (2, 40, 33, 17, 3, 1),
    (3, 7, 40, 32, 3, 1),  # Wide enough for minimal filtering.
]


def data(layer, seed=0):
    batch, side, inputs, outputs, size, _ = layer
    draw = np.random.default_rng(seed).standard_normal
    x = draw((batch, side, side, inputs), np.float32)
    kernel = draw((size, size, inputs, outputs), np.float32)
    return jax.device_put((x, kernel / np.float32(np.sqrt(size * size * inputs))))


def with_gradients(implementation, layer, x, kernel):
    def fn(x, kernel):
        return conv(
            x,
            kernel,
            stride=layer[5],
            padding=layer[4] // 2,
            implementation=implementation,
        )

    @jax.jit
    def both(x, kernel):
        out, pull = jax.vjp(fn, x, kernel)
        return out, *pull(jnp.cos(jnp.arange(out.size).reshape(out.shape)))

    return both(x, kernel)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
@compiling.fully()
def test_the_quickest_way_agrees_with_xlas_forwards_and_backwards(layer):
    x, kernel = data(layer)
    got = with_gradients("auto", layer, x, kernel)
    want = with_gradients("xla", layer, x, kernel)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
@compiling.fully()
def test_products_of_patches_agree_with_xlas_convolution(layer):
    x, kernel = data(layer)
    size, stride = layer[4:]
    window = {"stride": stride, "padding": size // 2}
    want, *gradients = with_gradients("xla", layer, x, kernel)
    grad = jnp.asarray(np.cos(np.arange(want.size)).reshape(want.shape), x.dtype)
    images = jax.ShapeDtypeStruct(x.shape, x.dtype)

    @jax.jit
    def products(x, kernel, grad):
        return (
            matmul.conv(x, kernel, **window),
            matmul.images_gradient(grad, kernel, **window, images=images),
            matmul.kernel_gradient(x, grad, size, **window),
        )

    for a, b in zip(products(x, kernel, grad), (want, *gradients), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize(
    ("layer", "implementations"),
    [
        ((2, 10, 4, 6, 3, 1), ("xla", "auto")),
        ((2, 5, 32, 32, 3, 1), ("auto",)),
    ],
    ids=str,
)
def test_kernels_of_their_own_under_vmap_equal_a_loop(layer, implementations):
    pairs = [data(layer, seed) for seed in range(3)]
    xs, kernels = (np.stack(arrays) for arrays in zip(*pairs, strict=True))
    for implementation in implementations:

        def fn(x, kernel, implementation=implementation):
            return with_gradients(implementation, layer, x, kernel)

        mapped = jax.vmap(fn)(xs, kernels)
        for i, pair in enumerate(pairs):
            for a, b in zip(mapped, fn(*pair), strict=True):
                np.testing.assert_allclose(a[i], b, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize(
    ("side", "size", "stride", "padding"),
    [(42, 3, 2, 1), (43, 3, 2, 1), (21, 2, 2, 0), (9, 3, 1, 1), (11, 3, 3, 0)],
)
def test_max_pool_equals_reduce_window(side, size, stride, padding):
    x = data((2, side, 3, 1, 1, 1))[0]
    edge = (padding, padding)

    def reference(x):
        return lax.reduce_window(
            x,
            -jnp.inf,
            lax.max,
            (1, size, size, 1),
            (1, stride, stride, 1),
            ((0, 0), edge, edge, (0, 0)),
        )

    def ours(x):
        return max_pool(x, size=size, stride=stride, padding=padding)

    @jax.jit
    def both(x):
        want, pull = jax.vjp(reference, x)
        got, our_pull = jax.vjp(ours, x)
        return (got, *our_pull(want)), (want, *pull(want))

    got, want = both(x)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)


def test_among_equals_the_first_takes_the_gradient():
    gradient = jax.grad(lambda x: max_pool(x, size=2, stride=2).sum())
    x = jnp.ones((1, 2, 2, 1))
    assert gradient(x)[0, :, :, 0].tolist() == [[1.0, 0.0], [0.0, 0.0]]
