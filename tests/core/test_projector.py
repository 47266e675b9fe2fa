"""The projector onto leading directions against eigenvectors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.core.projector import leading_projector


@pytest.fixture(scope="module")
def signed():
    """A matrix of both signs, and its eigenvectors in the order of magnitudes."""
    values = np.array([5, -3, 2, 1.2, -1, 0.3, 0.1, 0])
    vectors, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))
    return values, vectors, ((vectors * values) @ vectors.T).astype(np.float32)


@pytest.mark.parametrize("dim", [1, 2, 4, 5])
def test_projector_is_of_the_largest_magnitudes(signed, dim):
    values, vectors, matrix = signed
    got = leading_projector(jnp.asarray(matrix), dim)
    first = vectors[:, :dim]
    np.testing.assert_allclose(got.projector, first @ first.T, atol=1e-5)
    factor = np.diag(first.T @ got.inverse @ first) * values[:dim]
    assert (factor > 0.4).all() and (factor < 1.001).all()


def test_eigenvalues_of_many_magnitudes(signed):
    _, vectors, _ = signed
    matrix = (vectors * 4.0 ** -np.arange(8)) @ vectors.T
    for dim in (1, 3, 5):
        got = leading_projector(jnp.asarray(matrix, jnp.float32), dim).projector
        want = vectors[:, :dim] @ vectors[:, :dim].T
        np.testing.assert_allclose(got, want, atol=1e-3)


def test_of_fewer_directions_than_wanted_all_are_kept(signed):
    _, vectors, _ = signed
    matrix = (vectors[:, :3] * [3, -2, 1]) @ vectors[:, :3].T
    got = np.asarray(leading_projector(jnp.asarray(matrix, jnp.float32), 5).projector)
    np.testing.assert_allclose(got @ vectors[:, :3], vectors[:, :3], atol=1e-4)


def test_nothing_and_equal_values_are_finite():
    for matrix in (jnp.zeros((4, 4)), jnp.eye(4)):
        leading = leading_projector(matrix, 2)
        assert all(np.isfinite(x).all() for x in leading)


def test_batches_equal_single_calls(signed):
    matrices = jnp.stack([signed[2], 2 * signed[2], signed[2] @ signed[2]])
    batch = jax.vmap(lambda matrix: leading_projector(matrix, 2))(matrices)
    for i, matrix in enumerate(matrices):
        one = leading_projector(matrix, 2)
        np.testing.assert_allclose(batch.projector[i], one.projector, atol=1e-5)
