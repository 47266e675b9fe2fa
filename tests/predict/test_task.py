"""Calibrated distances of tasks of any shape."""

import dataclasses

import numpy as np
import pytest
from evaluation import worlds

import rdc_jax
from rdc_jax.predict import task
from rdc_jax.predict.task import Support, calibrated
from rdc_jax.runtime.errors import UserError

PARAMS = worlds.PARAMS


def make_task(*, classes=4, shots=(3, 1, 2, 4), queries=30, d=24, seed=0):
    """A task of unequal shots; queries in random order, with their classes."""
    rng = np.random.default_rng(seed)
    centre_cd = rng.normal(size=(classes, d))
    labels_s = np.repeat(np.arange(classes), shots).astype(np.int32)
    labels_q = rng.integers(0, classes, queries)
    feat = [
        (centre_cd[labels] + 0.6 * rng.normal(size=(len(labels), d))).astype(np.float32)
        for labels in (labels_s, labels_q)
    ]
    return Support(feat[0], labels_s, classes), feat[1], labels_q


def test_padding_changes_nothing():
    support, query, _ = make_task()
    found = calibrated(support, query, PARAMS, 100)
    want = rdc_jax.rdc(support.features, support.labels, query, 4, params=PARAMS)
    s = len(support.labels)
    np.testing.assert_allclose(found.classes, want.class_distances, atol=1e-5)
    np.testing.assert_allclose(found.supports, want.distances[s:, :s], atol=1e-5)


def test_the_order_of_queries_changes_not_even_the_last_bit():
    support, query, _ = make_task()
    order = np.random.default_rng(1).permutation(len(query))
    for batch_size in (100, 12):
        found = calibrated(support, query, PARAMS, batch_size)
        again = calibrated(support, query[order], PARAMS, batch_size)
        assert (found.classes[order] == again.classes).all()
        assert (found.supports[order] == again.supports).all()


def test_batches_are_tasks_of_their_own():
    support, query, labels = make_task(queries=60)
    found = calibrated(support, query, PARAMS, 20)
    whole = calibrated(support, query, PARAMS, 60)
    assert not np.allclose(found.classes, whole.classes, atol=1e-4)
    assert (found.classes.argmin(1) == labels).mean() > 0.9


@pytest.mark.parametrize(
    ("classes", "shots", "queries"), [(2, 1, 1), (4, (5, 1, 1, 1), 3), (120, 1, 40)]
)
def test_any_shape_is_answered(classes, shots, queries):
    support, query, labels = make_task(classes=classes, shots=shots, queries=queries)
    found = calibrated(support, query, PARAMS, 100)
    assert found.classes.shape == (queries, classes)
    assert np.isfinite(found.classes).all()
    assert (found.classes.argmin(1) == labels).mean() > 0.8


def test_few_programs_are_compiled():
    params = dataclasses.replace(PARAMS, k=3)  # programs of this test alone
    before = task._rdc._cache_size()
    for queries in (1, 5, 20, 40, 45):  # with 10 supports in 12 rows
        support, query, _ = make_task(queries=queries)
        calibrated(support, query, params, 100)
    assert task._rdc._cache_size() - before == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_features_that_are_no_float32_are_told_and_not_answered(value):
    support, query, _ = make_task()
    query = query.astype(np.float64)
    query[3, 5] = value
    with pytest.raises(UserError, match="finite float32"):
        calibrated(support, query, PARAMS, 100)
