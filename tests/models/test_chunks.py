"""Images are taken a few at a time; that must not show."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models.conv import conv
from rdc_jax.models.cpu import matmul, winograd
from rdc_jax.models.cpu.pool import max_pool

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def with_gradients(implementation, x, kernel, stride):
    def fn(x, kernel):
        padding = kernel.shape[0] // 2
        return conv(
            x, kernel, stride=stride, padding=padding, implementation=implementation
        )

    @jax.jit
    def both(x, kernel):
        out, pull = jax.vjp(fn, x, kernel)
        return out, *pull(jnp.cos(jnp.arange(out.size).reshape(out.shape)))

    return both(x, kernel)


@pytest.fixture
def two_images_at_a_time(monkeypatch):
    """Of 10 x 10 pixels, 4 channels, 3 x 3 kernels and stride 1."""
    monkeypatch.setattr(matmul, "_CHUNK_BYTES", 2 * 100 * 9 * 4 * 4)
    for name in ("_CHUNK_BYTES", "_GRADIENT_CHUNK_BYTES"):
        monkeypatch.setattr(winograd, name, 2 * 16 * 25 * 4 * 4)
    monkeypatch.setattr(winograd, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(winograd, "_FEW", 0)
    for way in (matmul, winograd):
        monkeypatch.setattr(way, "_CHUNK_KERNELS", 0)


@pytest.mark.usefixtures("two_images_at_a_time")
@pytest.mark.parametrize(("images", "chunk"), [(6, 2), (7, 2), (1, 1)])
@pytest.mark.parametrize("stride", [1, 2])
def test_chunks_and_their_remainder_are_inert(images, chunk, stride):
    keys = jax.random.split(jax.random.key(0))
    x = jax.random.normal(keys[0], (images, 10, 10, 4))
    kernel = jax.random.normal(keys[1], (3, 3, 4, 5))
    if stride == 1:
        assert matmul._chunk(x, 3, 1, 5) == chunk
        assert winograd._chunk(x, 5, winograd._CHUNK_BYTES) == chunk
    want = with_gradients("xla", x, kernel, stride)
    got = with_gradients("auto", x, kernel, stride)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize(("images", "chunk"), [(64, 8), (80, 10), (97, 14)])
def test_chunks_divide_the_batch_where_a_divisor_is_near(images, chunk):
    x = jnp.zeros((images, 6, 6, 256))
    assert matmul._chunk(x, 3, 1, 256) == chunk


@pytest.mark.parametrize(("side", "loops"), [(21, 0), (56, 1)])
def test_small_images_are_filtered_without_a_loop(side, loops):
    x = jax.ShapeDtypeStruct((64, side, side, 64), jnp.float32)
    kernel = jax.ShapeDtypeStruct((3, 3, 64, 64), jnp.float32)
    assert str(jax.make_jaxpr(winograd.conv)(x, kernel)).count("scan[") == loops


@pytest.mark.parametrize("images", [3, 4, 9])
def test_max_pool_of_a_batch_is_that_of_its_images(images):
    x = jax.random.normal(jax.random.key(0), (images, 9, 9, 2))

    def pull(x):
        out, back = jax.vjp(lambda x: max_pool(x, size=3, stride=2, padding=1), x)
        return out, back(jnp.sin(out))[0]

    whole = pull(x)
    for i in range(images):
        for a, b in zip(whole, pull(x[i : i + 1]), strict=True):
            np.testing.assert_array_equal(a[i], b[0])
