"""Statistics against plain loops."""

import math

import numpy as np
import pytest
from scipy import stats

from rdc_jax.core import statistics


@pytest.fixture
def accuracies():
    rng = np.random.default_rng(0)
    return rng.integers(0, 76, (2, 200)) * 100 / 75


def loop_mean(values):
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    quantile = stats.t.ppf(0.975, len(values) - 1)
    return mean, quantile * math.sqrt(variance) / math.sqrt(len(values))


def test_mean_and_interval(accuracies):
    got = statistics.mean(accuracies[0])
    assert got == pytest.approx(loop_mean(accuracies[0].tolist()))


def test_gains_are_paired(accuracies):
    one, other = accuracies
    got = statistics.gain(one, other)
    differences = [a - b for a, b in zip(one, other, strict=True)]
    assert got[:2] == pytest.approx(loop_mean(differences))
    assert got.wins == sum(d > 0 for d in differences)
    assert got.losses == sum(d < 0 for d in differences)
    assert got.wins + got.losses < len(one)  # there are ties


def test_a_constant_gain_has_no_interval(accuracies):
    got = statistics.gain(accuracies[0] + 1, accuracies[0])
    assert got.mean == pytest.approx(1)
    assert got.ci95 == pytest.approx(0, abs=1e-12)
    assert (got.wins, got.losses) == (200, 0)


def test_one_episode_has_a_mean_and_no_interval():
    assert statistics.mean(np.array([40.0])) == (40.0, None)
    assert statistics.average([(1.0, 0.3), (3.0, None)], [9, 1]) == (2.0, None)


def covered(found, truth):
    """Share of intervals that hold the truth."""
    return np.mean([abs(each.mean - truth) <= each.ci95 for each in found])


@pytest.mark.parametrize("episodes", [2, 4, 10, 20])
def test_intervals_hold_the_mean_in_95_of_100_cases(episodes):
    rng = np.random.default_rng(episodes)
    own, base, harder = rng.normal(50, 10, (3, 3000, episodes))
    assert 0.93 < covered(map(statistics.mean, own), 50) < 0.97
    assert 0.93 < covered(map(statistics.gain, own, base + harder), -50) < 0.97


@pytest.mark.parametrize("episodes", [4, 10, 20])
def test_intervals_of_averages_do_too(episodes):
    rng = np.random.default_rng(episodes)
    spread_m = np.array([2.0, 2.0, 5.0, 10.0])
    means = [
        [statistics.mean(values) for values in run]
        for run in rng.normal(50, spread_m[:, None], (2000, 4, episodes))
    ]
    found = [statistics.average(run, [episodes] * 4) for run in means]
    assert 0.93 < covered(found, 50) < 0.97


def test_the_average_of_one_is_itself():
    one = statistics.mean(np.array([40.0, 44.0, 60.0]))
    assert statistics.average([one], [3]) == pytest.approx(one)


def test_of_many_tasks_the_interval_is_the_fields(accuracies):
    many = np.tile(accuracies[0], 10)
    field = 1.96 * many.std() / math.sqrt(2000)
    assert statistics.mean(many).ci95 == pytest.approx(field, rel=1e-3)


def test_gains_without_spread_have_an_average_without_spread():
    assert statistics.average([(1.0, 0.0), (3.0, 0.0)], [5, 5]) == (2.0, 0.0)
