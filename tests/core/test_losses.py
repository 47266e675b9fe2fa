"""The losses against plain loops, and what they promise of gradients and masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.episodes import make_episode
from oracles import rdc as oracle

import rdc_jax


@pytest.fixture(scope="module")
def task():
    support, labels, query = make_episode("relu")
    params = rdc_jax.RDCParams(k=5, k2=3, dim=8)
    out = rdc_jax.rdc(support, labels, query, num_classes=5, params=params)
    return out.original, out.distances, out.neighbours


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize(("alpha", "tau"), [(0.5, 3.0), (0.0, 1.0)])
def test_kl_loss_equals_the_oracle(task, sign, include_self, alpha, tau):
    options = dict(sign=sign, include_self=include_self)
    got = rdc_jax.kl_loss(*task, alpha, tau, **options)
    want = oracle.kl_loss(*map(np.asarray, task), alpha, tau, **options)
    # Differences of logarithms near log n, times tau²: their rounding remains.
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_mse_loss_equals_the_oracle(task, alpha):
    want = oracle.mse_loss(*map(np.asarray, task), alpha)
    np.testing.assert_allclose(rdc_jax.mse_loss(*task, alpha), want, rtol=1e-6)


def test_attention_weighs_neighbours(task):
    weight = rdc_jax.attention_mask(task[2], alpha=0.5)
    np.testing.assert_array_equal(weight, np.where(task[2], 1.5, 1.0))


@pytest.mark.parametrize("loss", [rdc_jax.kl_loss, rdc_jax.mse_loss])
def test_equal_distributions_cost_nothing(task, loss):
    original, _, neighbours = task
    np.testing.assert_allclose(loss(original, original, neighbours), 0, atol=1e-6)


@pytest.mark.parametrize("loss", [rdc_jax.kl_loss, rdc_jax.mse_loss])
def test_only_the_original_distances_carry_a_gradient(task, loss):
    original, target, neighbours = task
    to_original, to_target = jax.grad(loss, argnums=(0, 1))(
        original, target, neighbours
    )
    assert np.isfinite(to_original).all() and np.abs(to_original).max() > 0
    assert (to_target == 0).all()


@pytest.mark.parametrize("loss", [rdc_jax.kl_loss, rdc_jax.mse_loss])
def test_padding_is_inert(task, loss):
    n = len(task[0])
    padded = [jnp.pad(x, (0, 3), constant_values=1) for x in task]
    mask = np.arange(n + 3) < n
    np.testing.assert_allclose(loss(*padded, mask=mask), loss(*task), rtol=1e-6)
    gradient = jax.grad(loss)(*padded, mask=mask)
    assert np.isfinite(gradient).all() and (gradient[n:] == 0).all()


def test_alpha_and_tau_can_be_swept_in_one_call(task):
    alphas, taus = jnp.array([0.0, 0.5, 1.0]), jnp.array([1.0, 2.0, 3.0])
    swept = jax.jit(jax.vmap(lambda a, t: rdc_jax.kl_loss(*task, a, t)))(alphas, taus)
    each = [rdc_jax.kl_loss(*task, a, t) for a, t in zip(alphas, taus, strict=True)]
    np.testing.assert_allclose(swept, each, rtol=0, atol=1e-6)


def test_a_task_of_one_row_costs_nothing():
    zero, none = jnp.zeros((1, 1)), jnp.ones((1, 1), bool)
    assert rdc_jax.kl_loss(zero, zero, none) == 0


@pytest.mark.parametrize("loss", [rdc_jax.kl_loss, rdc_jax.mse_loss])
@pytest.mark.parametrize("which", [0, 1])
def test_distances_that_are_not_finite_are_not_hidden(task, loss, which):
    broken = [jnp.asarray(x) for x in task]
    broken[which] = broken[which].at[2, 3].set(jnp.nan)
    assert np.isnan(loss(*broken))


def test_attention_has_a_dtype_of_its_own(task):
    """A weak type would compile what it is given to twice."""
    assert not rdc_jax.attention_mask(task[2], alpha=0.5).weak_type
