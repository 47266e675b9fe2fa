"""Batch normalisation: whose statistics, and what is left of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models.norm import BatchNorm

pytestmark = pytest.mark.usefixtures("optimised")

X = 3 + 2 * jax.random.normal(jax.random.key(0), (4, 5, 5, 3))
VARIABLES = {
    "params": {"scale": jnp.full(3, 1.5), "bias": jnp.full(3, -1.0)},
    "batch_stats": {"mean": jnp.full(3, 0.5), "var": jnp.full(3, 4.0)},
}


def test_training_normalises_by_the_batch_and_updates_without_bias():
    out, new = BatchNorm().apply(VARIABLES, X, train=True, mutable=["batch_stats"])
    np.testing.assert_allclose(out.mean((0, 1, 2)), -1, atol=1e-5)
    np.testing.assert_allclose(out.std((0, 1, 2)), 1.5, rtol=1e-4)
    want = 0.9 * 4 + 0.1 * np.var(X, (0, 1, 2), ddof=1)
    np.testing.assert_allclose(new["batch_stats"]["var"], want, rtol=1e-5)


def test_batch_statistics_can_be_used_without_being_kept():
    kept, _ = BatchNorm().apply(VARIABLES, X, train=True, mutable=["batch_stats"])
    np.testing.assert_array_equal(BatchNorm().apply(VARIABLES, X, train=True), kept)


def test_frozen_statistics_make_examples_independent():
    out = BatchNorm().apply(VARIABLES, X, train=False)
    want = (X - 0.5) / np.sqrt(4 + 1e-5) * 1.5 - 1
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    alone = BatchNorm().apply(VARIABLES, X[:1], train=False)
    np.testing.assert_allclose(alone, out[:1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("train", [True, False])
def test_gradients_reach_scale_and_bias_in_either_mode(train):
    def loss(params):
        variables = {**VARIABLES, "params": params}
        return (BatchNorm().apply(variables, X, train=train) ** 2).sum()

    grads = jax.grad(loss)(VARIABLES["params"])
    assert all((np.abs(g) > 1e-3).all() for g in jax.tree.leaves(grads))


def test_a_large_offset_near_the_running_mean_costs_no_precision():
    near = {"mean": jnp.full(3, 1000.0), "var": jnp.ones(3)}
    variables = {**VARIABLES, "batch_stats": near}
    out = BatchNorm().apply(variables, X + 997, train=True)
    want = BatchNorm().apply(VARIABLES, X, train=True)
    np.testing.assert_allclose(out, want, atol=1e-3)
