"""Advice from a task alone: what it rests on, and what it does not depend on."""

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from core.episodes import make_episode

import rdc_jax


def make_task(**kwargs):
    """Features and labels, -1 for queries."""
    support, labels, query = make_episode("relu", **kwargs)
    return np.concatenate([support, query]), np.append(labels, [-1] * len(query))


def purity(features, labels):
    """By plain loops: how far the soft answers of neighbours agree."""
    rows = np.sqrt(features.astype(np.float64))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    means = [rows[labels == c].mean(axis=0) for c in range(labels.max() + 1)]
    answers = []
    for row, label in zip(rows, labels, strict=True):
        weights = np.exp([-5 * ((row - mean) ** 2).sum() for mean in means])
        soft = weights / weights.sum()
        answers.append(np.eye(len(means))[label] if label >= 0 else soft)
    total, count = 0.0, 0
    for i, row in enumerate(rows):
        order = np.argsort([-row @ other for other in rows], kind="stable")
        for j in [j for j in order if j != i][:10]:
            total += answers[i] @ answers[j]
            count += 1
    return total / count


def test_purity_is_that_of_plain_loops():
    features, labels = make_task(shot=2, query=9)
    advice = rdc_jax.advise(features, labels)
    assert advice.purity == pytest.approx(purity(features, labels), abs=1e-5)


def test_evidence_does_not_depend_on_order_or_scale():
    features, labels = make_task(shot=2, query=9)
    order = np.random.default_rng(0).permutation(len(labels))
    first = rdc_jax.advise(features, labels)
    again = rdc_jax.advise(jnp.asarray(3 * features[order]), labels[order])
    assert again[:4] == first[:4]
    assert again.purity == pytest.approx(first.purity, abs=1e-5)


@pytest.mark.parametrize(("shot", "query"), [(1, 15), (1, 1), (8, 5)])
def test_what_is_advised_can_be_asked_for(shot, query):
    features, labels = make_task(shot=shot, query=query)
    classes, known = labels.max() + 1, labels >= 0
    advice = rdc_jax.advise(features, labels)
    assert advice[1:4] == (classes, shot, len(labels) - classes * shot)
    assert str(advice).startswith(f"rdc_plus: {classes} classes with {shot} labelled")
    given = features[known], labels[known], features[~known]
    found = rdc_jax.get(advice.method)(*given, num_classes=int(classes))
    assert found.shape == (advice.queries, classes)


def test_thousands_of_queries_are_looked_at_by_a_sample():
    rng = np.random.default_rng(0)
    labels = np.append([0, 1], np.full(3000, -1))
    advice = rdc_jax.advise(rng.normal(size=(3002, 4)), labels)
    assert advice.queries == 3000 and 0 < advice.purity <= 1


@pytest.fixture
def no_type_checks():
    """As outside the tests, where annotations are not checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x[0], y), "give a label for each row"),
        (lambda x, y: (x, y[1:]), "give a label for each row"),
        (lambda x, y: (x, y + 0.5), "labels must be integers"),
        (lambda x, y: (x, np.where(y == 0, -1, y)), "each at least once"),
        (lambda x, y: (x, np.full_like(y, -1)), "each at least once"),
        (lambda x, y: (x, np.maximum(y, 0)), "all rows have a label"),
        (lambda x, y: (x * np.nan, y), "NaN or infinity"),
    ],
)
def test_mistakes_are_told(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        rdc_jax.advise(*change(*make_task()))
