"""Statistics against plain loops."""

import math

import numpy as np
import pytest

from rdc_jax.evaluation import statistics


@pytest.fixture
def accuracies():
    rng = np.random.default_rng(0)
    return rng.integers(0, 76, (2, 200)) * 100 / 75


def loop_mean(values):
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    return mean, 1.96 * math.sqrt(variance) / math.sqrt(len(values))


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
    assert statistics.average([(1.0, 0.3), (3.0, None)]) == (2.0, None)
