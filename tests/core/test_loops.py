"""Loops whose start is the same on all devices, inside of ``shard_map``."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.episodes import make_episode
from jax.sharding import Mesh, PartitionSpec

import rdc_jax
from rdc_jax.core.loops import repeat

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def sharded(fn):
    """One task a device; JAX checks what varies over the devices."""
    mesh, each = Mesh(jax.devices()[:2], "e"), PartitionSpec("e")
    mapped = jax.shard_map(jax.vmap(fn), mesh=mesh, in_specs=each, out_specs=each)
    return jax.jit(mapped)


def test_a_start_that_does_not_vary_becomes_one_that_does():
    def spread(x):
        def step(state):
            # It takes two of them until all that is handed on varies.
            return (state[0] + x.sum(), state[0], state[2] + 1)

        return repeat(step, 3, (jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(0)))

    last, before, count = sharded(spread)(jnp.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal(last, [3, 15])
    np.testing.assert_array_equal(before, [2, 10])
    np.testing.assert_array_equal(count, [3, 3])


def test_gradients_are_those_outside():
    def value(x):
        return repeat(lambda y: y * x + 1, 3, jnp.ones(()))

    x = jnp.array([2.0, 3.0])
    inside = sharded(jax.grad(value))(x)
    np.testing.assert_allclose(inside, jax.vmap(jax.grad(value))(x))


@pytest.mark.parametrize("name", ["rdc_plus(steps=2)", "pt_map(steps=2)"])
def test_methods_pass_the_check(name):
    episodes = [make_episode(shot=1, query=3, d=16, seed=seed) for seed in range(2)]
    batch = [np.stack(arrays) for arrays in zip(*episodes, strict=True)]
    one = functools.partial(rdc_jax.get(name), num_classes=5)
    got = sharded(one)(*batch)
    want = jax.vmap(one)(*batch)
    np.testing.assert_allclose(got, want, atol=1e-5)
