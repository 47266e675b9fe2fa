"""The hash that stands in for a random generator."""

import jax
import numpy as np

from rdc_jax.data.synthetic.hash_rng import bells, derive, fork, uniform, uniforms


def test_numbers_are_uniform_and_uncorrelated() -> None:
    grid = np.indices((200, 200)) - 100
    values = np.asarray(uniform(3, *grid))
    assert values.min() >= 0
    assert values.max() < 1
    counts, _ = np.histogram(values, 16, (0, 1))
    assert np.all(np.abs(counts - 2500) < 5 * 50)
    flat = values - values.mean()
    for shift in ((0, 1), (1, 0), (1, 1)):
        moved = np.roll(flat, shift, axis=(0, 1))
        assert abs((flat * moved).mean()) < 5 * flat.var() / 200


def test_seeds_and_forks_are_independent() -> None:
    one, two = (np.asarray(bells(seed, (10000,))) for seed in fork(derive(1), 2))
    assert abs(one.mean()) < 0.05
    assert abs(one.std() - 1) < 0.05
    assert abs((one * two).mean()) < 0.05
    assert len(np.unique(derive(*np.indices((50, 50))))) == 2500


def test_indices_are_ordered() -> None:
    assert int(derive(5, 1, 2)) != int(derive(5, 2, 1))


def test_ranges_are_kept() -> None:
    seeds = derive(0, np.arange(50))
    draw = jax.vmap(lambda s: vars(uniforms(s, a=(-1.0, 1.0), b=(5.0, 6.0))))(seeds)
    draws = np.stack([draw["a"], draw["b"]], axis=1)
    assert np.all((draws >= [-1, 5]) & (draws < [1, 6]))
    assert np.all(draws.std(axis=0) > [0.4, 0.2])
