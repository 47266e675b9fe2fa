"""Sinkhorn's scaling, against plain loops and what the plan must be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.core.sinkhorn import sinkhorn

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def scaled_in_loops(cost, rows, columns, epsilon, steps):
    """Scale the kernel itself in float64, rows first."""
    cost, rows, columns = (np.asarray(x, np.float64) for x in (cost, rows, columns))
    plan = np.exp(-cost / epsilon)
    for _ in range(steps):
        plan *= (rows / plan.sum(axis=1))[:, None]
        plan *= (columns / plan.sum(axis=0))[None, :]
    return plan


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    cost = rng.uniform(size=(6, 4)).astype(np.float32)
    rows = rng.uniform(0.5, 1.5, 6).astype(np.float32)
    columns = rng.uniform(0.5, 1.5, 4).astype(np.float32)
    return tuple(map(jnp.asarray, (cost, rows / rows.sum(), columns / columns.sum())))


@pytest.mark.parametrize("steps", [1, 3, 40])
def test_it_equals_plain_scaling(problem, steps):
    plan = sinkhorn(*problem, epsilon=0.2, steps=steps)
    want = scaled_in_loops(*problem, epsilon=0.2, steps=steps)
    np.testing.assert_allclose(plan, want, atol=1e-6)


def test_both_sums_are_the_masses_in_the_end(problem):
    plan = np.asarray(sinkhorn(*problem, epsilon=0.1, steps=200))
    np.testing.assert_allclose(plan.sum(axis=1), problem[1], atol=1e-5)
    np.testing.assert_allclose(plan.sum(axis=0), problem[2], atol=1e-6)


def test_a_small_epsilon_does_not_overflow(problem):
    plan = np.asarray(sinkhorn(*problem, epsilon=1e-4, steps=50))
    assert np.isfinite(plan).all()
    np.testing.assert_allclose(plan.sum(axis=0), problem[2], atol=1e-6)


def test_rows_and_columns_without_mass_are_inert(problem):
    cost, rows, columns = problem
    padded = jnp.pad(cost, ((0, 2), (0, 1)), constant_values=-50)
    plan = sinkhorn(
        padded, jnp.pad(rows, (0, 2)), jnp.pad(columns, (0, 1)), epsilon=0.2, steps=20
    )
    np.testing.assert_allclose(
        plan[:6, :4], sinkhorn(*problem, epsilon=0.2, steps=20), atol=1e-6
    )
    assert not np.asarray(plan)[6:].any() and not np.asarray(plan)[:, 4:].any()


def test_gradients_are_finite_without_mass_too(problem):
    cost, rows, columns = problem
    rows = rows.at[2].set(0)

    def total(cost):
        return (sinkhorn(cost, rows, columns, epsilon=0.2, steps=10) ** 2).sum()

    gradient = jax.grad(total)(cost)
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0
