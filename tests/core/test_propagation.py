"""Label propagation, against plain loops and NumPy's solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.core.propagation import cosine_graph, nearest_only, propagate

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def unit_rows(n=14, d=6, seed=0):
    rows = np.random.default_rng(seed).standard_normal((n, d)) + 0.5
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return jnp.asarray(rows, jnp.float32)


def graph_in_loops(rows, k, power):
    n = len(rows)
    chosen = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        cosines = {j: max(float(rows[i] @ rows[j]), 0.0) for j in others}
        for j in sorted(others, key=lambda j: (-cosines[j], j))[:k]:
            chosen[i, j] = cosines[j] ** power
    return chosen + chosen.T


def solved(weight, labels, alpha):
    degree = weight.sum(axis=1)
    scale = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1e-30)), 0)
    smooth = scale[:, None] * weight * scale[None, :]
    return np.linalg.solve(np.eye(len(weight)) - alpha * smooth, labels)


@pytest.mark.parametrize("k", [1, 4, 13, 50])
def test_the_graph_equals_plain_loops(k):
    rows = unit_rows()
    got = cosine_graph(rows, jnp.ones(len(rows), bool), k=k)
    np.testing.assert_allclose(got, graph_in_loops(rows, k, 3.0), atol=1e-6)


def test_ties_at_the_cut_go_to_the_lowest_index():
    got = nearest_only(jnp.array([[0.0, 2.0, 1.0, 1.0]] * 4), 2)
    assert got[0].tolist() == [0.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5, 0.8, 0.99])
def test_propagation_equals_a_solver(alpha):
    weight = graph_in_loops(unit_rows(), 4, 3.0)
    labels = np.eye(14, 3)
    got = propagate(jnp.float32(weight), jnp.float32(labels), alpha)
    want = solved(weight, labels, alpha)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6 / (1 - alpha))


def test_rows_that_do_not_count_are_inert():
    rows, labels = unit_rows(), jnp.eye(14, 3)
    plain = propagate(cosine_graph(rows, jnp.ones(14, bool), k=4), labels, 0.8)
    padded_rows = jnp.concatenate([rows, rows[:3]])
    weight = cosine_graph(padded_rows, jnp.arange(17) < 14, k=4)
    padded = propagate(weight, jnp.pad(labels, ((0, 3), (0, 0))), 0.8)
    np.testing.assert_allclose(padded[:14], plain, atol=1e-6)
    assert not np.asarray(padded[14:]).any()


@pytest.mark.parametrize("alpha", [-0.1, 1.0])
def test_an_impossible_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        propagate(jnp.zeros((2, 2)), jnp.zeros((2, 1)), alpha)


def test_gradients_are_finite_at_isolated_rows():
    rows = unit_rows()
    rows = rows.at[3].set(0)

    def total(rows):
        weight = cosine_graph(rows, jnp.ones(14, bool), k=4)
        return (propagate(weight, jnp.eye(14, 3), 0.8) ** 2).sum()

    gradient = jax.grad(total)(rows)
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0
