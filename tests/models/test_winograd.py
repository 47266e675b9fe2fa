"""Minimal filtering against the definition in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models.cpu import winograd

pytestmark = pytest.mark.usefixtures("optimised")


def naive(x_bhwi, kernel_kkio):
    """The definition: stride 1, padding 1, in float64."""
    x = np.pad(np.float64(x_bhwi), ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = x_bhwi.shape[1:3]
    return sum(
        x[:, i : i + height, j : j + width] @ np.float64(kernel_kkio[i, j])
        for i, j in np.ndindex(3, 3)
    )


def data(height, width, inputs=16, outputs=8, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, height, width, inputs), np.float32)
    kernel = rng.standard_normal((3, 3, inputs, outputs), np.float32)
    grad = rng.standard_normal((2, height, width, outputs), np.float32)
    return jnp.asarray(x), jnp.asarray(kernel), jnp.asarray(grad)


def worst(got, want):
    """The largest error, as a share of the largest value."""
    return np.abs(np.asarray(got) - want).max() / np.abs(want).max()


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 3), (6, 4), (11, 2), (7, 9)])
def test_it_is_a_convolution_to_single_precision(height, width):
    x, kernel, _ = data(height, width)
    assert worst(jax.jit(winograd.conv)(x, kernel), naive(x, kernel)) < 1e-5


@pytest.mark.parametrize(("height", "width"), [(1, 1), (6, 4), (7, 9)])
def test_gradients_are_those_of_the_definition(height, width):
    x, kernel, grad = data(height, width)
    turned = kernel[::-1, ::-1].swapaxes(2, 3)
    got = jax.jit(winograd.images_gradient)(grad, kernel)
    assert worst(got, naive(grad, turned)) < 1e-5
    # A convolution is linear in its kernel: <grad, conv(x, e)> for each unit e.
    padded = np.pad(np.float64(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = np.zeros(kernel.shape)
    for i, j in np.ndindex(3, 3):
        seen = padded[:, i : i + height, j : j + width]
        want[i, j] = np.einsum("bhwi,bhwo->io", seen, np.float64(grad))
    assert worst(jax.jit(winograd.kernel_gradient)(x, grad), want) < 1e-5


@pytest.mark.parametrize(
    ("dtype", "size", "channels", "stride", "padding", "fits"),
    [
        (jnp.float32, 3, 32, 1, 1, True),
        (jnp.float32, 3, 31, 1, 1, False),
        (jnp.bfloat16, 3, 32, 1, 1, False),
        (jnp.float32, 5, 32, 1, 2, False),
        (jnp.float32, 3, 32, 2, 1, False),
        (jnp.float32, 3, 32, 1, 0, False),
    ],
)
def test_it_is_for_one_kind_of_layer(dtype, size, channels, stride, padding, fits):
    x = jnp.zeros((2, 8, 8, channels), dtype)
    kernel = jnp.zeros((size, size, channels, 40), dtype)
    assert winograd.fits(x, kernel, stride, padding) == fits
