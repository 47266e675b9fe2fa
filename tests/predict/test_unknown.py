"""Unknown scores: shares of pictures of the classes that would be nearer."""

import numpy as np
import pytest
from predict.test_temperature import make_support, oracle
from scipy import stats

from rdc_jax.predict.classify import Options, classify
from rdc_jax.predict.embedding import Pictures
from rdc_jax.predict.formats import render
from rdc_jax.predict.task import Support, plain_distances
from rdc_jax.predict.unknown import unknown_shares

CLASSES, D = 4, 64


def usual(support):
    """What is typical of the nearest distance, by the supports' own distances."""
    unit = support.features / np.linalg.norm(support.features, axis=1, keepdims=True)
    between = np.mean(
        [
            np.linalg.norm(a - b)
            for i, a in enumerate(unit)
            for j, b in enumerate(unit)
            if support.labels[i] != support.labels[j]
        ]
    )
    return (0.605 + 0.175 / np.bincount(support.labels).mean()) * between


@pytest.mark.parametrize("shots", [(2, 2), (3, 3, 3), (1, 4, 2)])
def test_shares_are_those_of_supports_left_out_in_plain_loops(shots):
    support = make_support(shots, d=D)
    near = [dist.min() * np.sqrt(1 - 1 / shots[c] ** 2) for c, dist in oracle(support)]
    typical, count = usual(support), 10 + len(near)
    mean = (10 * typical + sum(near)) / count
    squares = 10 * ((0.2 * typical) ** 2 + (typical - mean) ** 2)
    variance = (squares + sum((x - mean) ** 2 for x in near)) / count
    student = stats.t(count, mean, np.sqrt(variance * (1 + 1 / count)))
    distances = np.array([[0.4, 0.9], [0.8, 0.7], [1.3, 1.2]])
    want = student.cdf([0.4, 0.7, 1.2])
    np.testing.assert_allclose(unknown_shares(support, distances), want, rtol=1e-5)


def test_one_shot_goes_by_what_is_typical():
    support = make_support((1, 1, 1), d=D)
    typical = usual(support)
    found = unknown_shares(support, np.array([[typical, 9.0], [9.0, 1.5 * typical]]))
    assert found[0] == pytest.approx(0.5) and found[1] > 0.95


def test_one_class_goes_by_its_own_examples():
    alone = make_support((6,), d=D)
    near, far = unknown_shares(alone, np.array([[0.1], [1.9]]))
    assert near < 0.1 and far > 0.95
    nothing = Support(alone.features[:1], alone.labels[:1], ("0",))
    assert unknown_shares(nothing, np.array([[0.1], [1.9]])).tolist() == [0.5, 0.5]


def world(shots, *, queries=200, spread=1.0, seed=1):
    """Supports, queries of their classes, and queries of other classes."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(2 * CLASSES, D))

    def draw(labels):
        return centre[labels] + spread * rng.normal(size=(len(labels), D))

    labels = np.repeat(np.arange(CLASSES), shots).astype(np.int32)
    support = Support(draw(labels), labels, tuple("abcd"))
    known = draw(rng.integers(0, CLASSES, queries))
    return support, known, draw(rng.integers(CLASSES, 2 * CLASSES, queries))


@pytest.mark.parametrize("shots", [3, 8])
def test_few_pictures_of_the_classes_are_flagged_and_most_others(shots):
    support, known, foreign = world(shots, spread=0.8)
    shares = [
        unknown_shares(support, plain_distances(support, each))
        for each in (known, foreign)
    ]
    assert (shares[0] > 0.95).mean() < 0.12
    assert (shares[1] > 0.95).mean() > 0.8
    assert ((shares[0] >= 0) & (shares[1] <= 1)).all()


def test_the_other_pictures_change_nothing():
    support, known, foreign = world(3)
    options = Options(transductive=True, unknown_above=0.9)
    both = Pictures(np.concatenate([known[:40], foreign[:40]]))
    whole = classify(support, both, options)
    alone = classify(support, Pictures(known[:40]), options)
    np.testing.assert_allclose(whole.unknown_scores[:40], alone.unknown_scores)
    assert (whole.unknown == (whole.unknown_scores > 0.9)).all()
    assert whole.unknown[40:].sum() > whole.unknown[:40].sum()


def test_they_are_in_every_format():
    support, known, foreign = world(5, spread=0.7)
    images = tuple(map(str, range(len(support.labels))))
    query = Pictures(np.concatenate([known[:5], foreign[:5]]), tuple("0123456789"))
    answers = classify(support._replace(images=images), query, Options())
    flagged = int(answers.unknown.sum())
    assert flagged >= 3
    assert render(answers, "table").count("maybe none of these") == flagged
    assert render(answers, "json").count('"unknown": true') == flagged
    lines = render(answers, "csv").splitlines()
    assert lines[0].endswith("class_without_rdc,unknown_score,unknown,problem")
    assert sum(line.endswith(",yes,") for line in lines) == flagged
    never = classify(support, query, Options(unknown_above=1.0))
    assert not never.unknown.any()
