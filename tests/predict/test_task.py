"""Calibrated distances of tasks of any shape."""

import dataclasses

import numpy as np
import pytest
from evaluation import worlds

import rdc_jax
from rdc_jax.methods import get_method
from rdc_jax.predict import task
from rdc_jax.predict.task import (
    Support,
    bucket,
    compared_distances,
    content_order,
    plain_distances,
)
from rdc_jax.runtime.errors import UserError

PARAMS = worlds.PARAMS
RDC = dataclasses.replace(get_method("rdc"), rdc=PARAMS)
PLUS = get_method("rdc_plus(k=5)")


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
    names = tuple(map(str, range(classes)))
    return Support(feat[0], labels_s, names), feat[1], labels_q


def test_padding_changes_nothing():
    support, query, _ = make_task()
    to_class = compared_distances(support, query, RDC, 100)
    want = rdc_jax.rdc(support.features, support.labels, query, 4, params=PARAMS)
    np.testing.assert_allclose(to_class, want.class_distances, atol=1e-5)
    to_class = compared_distances(support, query, PLUS, 100)
    method = rdc_jax.get("rdc_plus(k=5)")
    want = method(support.features, support.labels, query, num_classes=4)
    np.testing.assert_allclose(to_class, want, atol=1e-4)


def test_plain_distances_are_those_of_npc():
    support, query, _ = make_task()
    want = rdc_jax.npc(support.features, support.labels, query, 4)
    np.testing.assert_allclose(plain_distances(support, query), want, atol=1e-5)


def test_a_plain_answer_is_the_same_whatever_is_beside_it():
    support, query, _ = make_task()
    together, alone = (plain_distances(support, q) for q in (query, query[:1]))
    np.testing.assert_allclose(together[:1], alone, rtol=1e-12)


@pytest.mark.parametrize("batch_size", [100, 12])
def test_the_order_of_queries_changes_not_even_the_last_bit(batch_size):
    support, query, _ = make_task()
    order = np.random.default_rng(1).permutation(len(query))
    for method in (RDC, PLUS):
        before = compared_distances(support, query, method, batch_size)
        after = compared_distances(support, query[order], method, batch_size)
        assert (before[order] == after).all()


def test_batches_are_tasks_of_their_own():
    support, query, labels = make_task(queries=60)
    parts = compared_distances(support, query, RDC, 20)
    whole = compared_distances(support, query, RDC, 60)
    assert not np.allclose(parts, whole, atol=1e-4)
    assert (parts.argmin(1) == labels).mean() > 0.9


@pytest.mark.parametrize(
    ("classes", "shots", "queries"), [(2, 1, 1), (4, (5, 1, 1, 1), 3), (120, 1, 40)]
)
def test_any_shape_is_answered(classes, shots, queries):
    support, query, labels = make_task(classes=classes, shots=shots, queries=queries)
    for method in (RDC, PLUS):
        to_class = compared_distances(support, query, method, 100)
        assert to_class.shape == (queries, classes)
        assert np.isfinite(to_class).all()
        assert (to_class.argmin(1) == labels).mean() > 0.8


def test_few_programs_are_compiled():
    method = get_method("rdc_plus(k=3)")  # programs of this test alone
    before = task._program._cache_size()
    for queries, shots in [(1, 1), (20, 2), (64, (3, 1, 2, 4)), (40, 4)]:
        support, query, _ = make_task(shots=shots, queries=queries)
        compared_distances(support, query, method, 100)
    assert task._program._cache_size() - before == 1


@pytest.mark.parametrize("queries", [1, 7, 15, 16, 100])
def test_batches_hold_every_query_once_and_are_of_nearly_equal_size(
    queries, monkeypatch
):
    sizes = []

    def count(made, method):
        sizes.append(made.query_mask.sum())
        return np.tile(made.query[:, :1], made.num_classes)

    monkeypatch.setattr(task, "_program", count)
    support, query, _ = make_task(queries=queries)
    to_class = compared_distances(support, query, RDC, 15)
    assert (to_class == query[:, :1]).all()
    assert len(sizes) == -(-queries // 15) and sum(sizes) == queries
    assert max(sizes) <= 15 and max(sizes) - min(sizes) <= 1


def test_the_order_follows_content_and_not_place():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    shuffled = rows[np.random.default_rng(1).permutation(50)]
    assert (rows[content_order(rows)] == shuffled[content_order(shuffled)]).all()
    assert not (content_order(rows) == np.arange(50)).all()


@pytest.mark.parametrize("n", [1, 8, 9, 100, 150, 700])
def test_buckets_hold_what_they_are_for_and_little_more(n):
    assert n <= bucket(n, 8) <= max(8, 1.5 * n)


def test_buckets_are_few():
    assert len({bucket(n, 64) for n in range(1, 1025)}) == 9


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_features_that_are_no_float32_are_told_and_not_answered(value):
    support, query, _ = make_task()
    query = query.astype(np.float64)
    query[3, 5] = value
    with pytest.raises(UserError, match="finite float32"):
        compared_distances(support, query, RDC, 100)
