"""The square root by products, against eigenvalues in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.core.square_root import square_root


def gram(n, d, seed=0):
    """Inner products of unit rows of mean zero: never of full rank."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    x -= x.mean(axis=0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


@pytest.mark.parametrize(("n", "d"), [(12, 400), (30, 6), (2, 3)])
def test_it_is_the_root_of_the_eigenvalues(n, d):
    matrix = gram(n, d)
    values, vectors = np.linalg.eigh(matrix)
    want = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    got = np.asarray(square_root(jnp.asarray(matrix, jnp.float32)))
    np.testing.assert_allclose(got, want, atol=3e-5)
    assert (got == got.T).all()


def test_tiny_eigenvalues_are_not_blown_up():
    got = square_root(jnp.diag(jnp.array([1.0, 1e-3, 1e-10])))
    np.testing.assert_allclose(jnp.diag(got)[:2], [1.0, 1e-3**0.5], rtol=1e-3)
    assert got[2, 2] < 1e-7


def test_padding_stays_zero_and_changes_nothing():
    matrix = jnp.asarray(gram(8, 20), jnp.float32)
    padded = square_root(jnp.pad(matrix, (0, 3)))
    np.testing.assert_allclose(padded[:8, :8], square_root(matrix), atol=1e-5)
    assert not padded[8:].any() and not padded[:, 8:].any()


def test_gradients_are_finite_where_eigenvalues_are_equal():
    slope = jax.grad(lambda m: square_root(m).sum())
    for matrix in (jnp.diag(jnp.array([1.0, 1, 0])), jnp.zeros((2, 2))):
        assert jnp.isfinite(slope(matrix)).all()
    assert jnp.isfinite(
        jax.grad(lambda m: square_root(m).sum())(jnp.zeros((2, 2)))
    ).all()
