"""Mapping over episodes in chunks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.episodes import make_episode

import rdc_jax
from rdc_jax.core.batching import chunk_size, over_episodes, peak_bytes

pytestmark = pytest.mark.usefixtures("compiled_quickly")

one_episode = functools.partial(
    rdc_jax.rdc, num_classes=5, params=rdc_jax.RDCParams(k=5, k2=3, dim=4)
)


@pytest.fixture(scope="module")
def batch():
    episodes = [make_episode(seed=seed) for seed in range(33)]
    return tuple(np.stack(arrays) for arrays in zip(*episodes, strict=True))


@pytest.fixture(scope="module")
def whole(batch):
    return jax.jit(jax.vmap(one_episode))(*batch)


@pytest.mark.parametrize("chunk", [None, 1, 11, 32, 33, 100])
def test_every_chunk_size_gives_the_same_results(batch, whole, chunk):
    got = jax.jit(over_episodes(one_episode, chunk))(*batch)
    np.testing.assert_array_equal(got.neighbours, whole.neighbours)
    np.testing.assert_array_equal(
        got.class_distances.argmin(-1), whole.class_distances.argmin(-1)
    )
    np.testing.assert_allclose(got.original, whole.original, atol=1e-6)
    # Four directions hold the centres of five tight classes: none is lost in noise.
    np.testing.assert_allclose(got.distances, whole.distances, atol=1e-6)


@pytest.mark.parametrize("chunk", [None, 4])
def test_keyword_arguments_are_mapped_too(batch, chunk):
    support, labels, query = (x[:6] for x in batch)
    masks = np.arange(query.shape[1]) < np.arange(3, 9)[:, None]
    npc = functools.partial(rdc_jax.npc, num_classes=5)
    got = jax.jit(over_episodes(npc, chunk))(support, labels, query, query_mask=masks)
    want = npc(support[5], labels[5], query[5], query_mask=masks[5])
    np.testing.assert_allclose(got[5], want, atol=1e-6)
    assert (got[0, 3:] == 0).all() and (got[0, :3] > 0).all()


def test_gradients_pass_through_chunks():
    x = jnp.arange(10.0)
    mapped = over_episodes(lambda v: v**3, chunk=4)
    gradient = jax.grad(lambda x: mapped(x).sum())(x)
    np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-6)


def test_pytrees_go_in_and_come_out():
    got = over_episodes(lambda t: {"sum": t["a"] + t["b"]}, chunk=2)(
        {"a": jnp.arange(5), "b": jnp.ones(5, int)}
    )
    np.testing.assert_array_equal(got["sum"], np.arange(5) + 1)


def test_the_chunk_follows_from_the_memory_of_one_episode():
    def outer(x):  # one intermediate of 4 MB
        return (x[:, None] * x[None, :] + 1).sum()

    args = (jax.ShapeDtypeStruct((1000, 1000), jnp.float32),)
    sizes = [chunk_size(outer, *args, budget=b) for b in (0, 100 * 2**20, 2**40)]
    assert sizes[0] == 1 and sizes[2] == 1000
    assert 5 <= sizes[1] <= 25


def test_memory_of_inner_programs_is_counted():
    big = jax.jit(lambda x: (x[:, None] + x[None, :]).sum())
    plain = jax.make_jaxpr(big.__wrapped__)(jnp.ones(100)).jaxpr
    nested = jax.make_jaxpr(big)(jnp.ones(100)).jaxpr
    assert peak_bytes(nested) >= peak_bytes(plain) >= 100 * 100 * 4


def test_the_chunk_bounds_the_compiled_memory():
    n, episodes = 200, 64
    x = jax.ShapeDtypeStruct((episodes, n, 16), jnp.float32)
    one = functools.partial(rdc_jax.calibrated_distances, params=rdc_jax.RDCParams())

    def temporary(chunk):
        compiled = jax.jit(over_episodes(one, chunk)).lower(x).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporary(4) < temporary(64) / 4
    estimate = peak_bytes(jax.make_jaxpr(one)(jnp.zeros((n, 16))).jaxpr)
    assert temporary(4) < 4 * estimate + 2 * episodes * n * n * 4


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="chunk must be at least 1"):
        over_episodes(one_episode, 0)
    with pytest.raises(ValueError, match="the same leading episode axis"):
        over_episodes(lambda a, b: a + b, 1)(jnp.ones(3), jnp.ones(4))


def test_tasks_that_exist_at_once_stay_in_the_caches():
    def temporary(episodes):
        shapes = [(5, 512), (5,), (75, 512)]
        dtypes = [jnp.float32, jnp.int32, jnp.float32]
        args = [
            jax.ShapeDtypeStruct((episodes, *shape), dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
        one = functools.partial(rdc_jax.rdc, num_classes=5)
        mapped = over_episodes(lambda *args: one(*args).class_distances)
        memory = jax.jit(mapped).lower(*args).compile().memory_analysis()
        return memory.temp_size_in_bytes

    assert temporary(64) < 2 * temporary(16)
