"""Probabilities: temperatures by leaving supports out."""

import numpy as np
import pytest

from rdc_jax.predict.task import Support, plain_distances
from rdc_jax.predict.temperature import (
    TYPICAL,
    fit_temperature,
    left_out_distances,
    probabilities,
)


def make_support(shots, *, spread=1.0, d=64, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(shots)), shots).astype(np.int32)
    centre = rng.normal(size=(len(shots), d))
    feat = centre[labels] + spread * rng.normal(size=(len(labels), d))
    return Support(feat.astype(np.float32), labels, tuple(map(str, range(len(shots)))))


def oracle(support):
    """Take supports out in plain loops: the r-th of every class that can spare one."""
    rows = []
    classes = [
        np.flatnonzero(support.labels == c) for c in range(len(support.class_names))
    ]
    for c, members in enumerate(classes):
        for r, i in enumerate(members):
            if len(members) == 1:
                continue
            out = {m[r % len(m)] for m in classes if len(m) > 1}
            keep = [j for j in range(len(support.labels)) if j not in out]
            left = support._replace(
                features=support.features[keep], labels=support.labels[keep]
            )
            rows.append((c, plain_distances(left, support.features[[i]])[0]))
    return rows


@pytest.mark.parametrize("shots", [(2, 2), (3, 3, 3), (1, 4, 2)])
def test_supports_are_left_out_as_in_plain_loops(shots):
    support = make_support(shots)
    dist, labels = left_out_distances(support)
    want = oracle(support)
    assert sorted(labels) == [c for c, _ in want]
    got = sorted((c, *row.round(9)) for c, row in zip(labels, dist, strict=True))
    assert got == sorted((c, *row.round(9)) for c, row in want)


def test_classes_that_mean_nothing_are_less_certain():
    support = make_support([5] * 4, spread=2.0)
    shuffled = np.random.default_rng(0).permutation(support.labels)
    for method in TYPICAL:
        cool, fitted = fit_temperature(support, method)
        warm, again = fit_temperature(support._replace(labels=shuffled), method)
        assert fitted and again
        assert 2 * cool < warm


def test_one_shot_has_the_typical_temperature_whatever_the_features():
    found = {
        fit_temperature(make_support([1] * 5, spread=s), "rdc_plus") for s in (0.1, 5.0)
    }
    assert len(found) == 1
    assert found.pop()[1] is False


def test_a_class_of_one_does_not_stop_the_fit():
    assert fit_temperature(make_support([1, 3, 3]), "rdc_plus")[1]


def test_more_shots_are_more_certain():
    values = [
        fit_temperature(make_support([n] * 5, spread=2.0), "rdc_plus")[0]
        for n in (2, 20)
    ]
    assert values[1] < values[0]


def test_probabilities_sum_to_one_and_follow_distance():
    dist = np.random.default_rng(0).random((6, 4)).astype(np.float32)
    for temperature in (1e-4, 0.1, 100.0):
        found = probabilities(dist, temperature)
        np.testing.assert_allclose(found.sum(1), 1)
        assert (found.argmax(1) == dist.argmin(1)).all()
