"""When calibration is used, and what is said of it."""

import dataclasses

import numpy as np
import pytest
from predict.test_task import make_task

from rdc_jax.predict.answers import percent, sum_up
from rdc_jax.predict.classify import Options, classify
from rdc_jax.predict.embedding import Pictures
from rdc_jax.runtime.errors import UserError

NAMES = ("ant", "bee", "cat", "dog")


def answer(queries, *, shots=(3, 1, 2, 4), **options):
    support, query, labels = make_task(shots=shots, queries=queries)
    support = support._replace(class_names=NAMES)
    answers = classify(support, Pictures(query), Options(**options))
    return answers, labels


def test_enough_queries_are_calibrated_without_a_word():
    answers, labels = answer(30)
    assert answers.transductive and answers.method == "RDC+" and not answers.notes
    assert (answers.predicted == labels).mean() > 0.9


def test_few_queries_get_class_means_and_a_note():
    answers, labels = answer(5)
    assert not answers.transductive
    assert "needs about 10 pictures" in answers.notes[0]
    assert "has 5, so the nearest class mean was used" in answers.notes[0]
    assert (answers.predicted == answers.plain).all()
    assert (answers.predicted == labels).mean() > 0.7


def test_rdc_wants_two_queries_a_support():
    answers, _ = answer(19, method="rdc(k=5)")
    assert "RDC needs about 20 pictures" in answers.notes[0]
    assert answer(20, method="rdc(k=5)")[0].method == "RDC"


def test_transduction_can_be_forced_and_forbidden():
    forced, _ = answer(5, transductive=True)
    assert (
        forced.transductive
        and "the nearest class mean may do better" in forced.notes[0]
    )
    assert not answer(30, transductive=False)[0].transductive


def test_small_batches_are_few_queries():
    assert not answer(30, batch_size=9)[0].transductive


def test_one_shot_says_that_nothing_was_fitted():
    answers, _ = answer(30, shots=1)
    assert "of a typical task" in answers.notes[0]
    assert answer(30, shots=1, temperature=0.2)[0].notes == ()


def test_rejection_follows_the_threshold():
    for threshold in (0.0, 0.6, 1.0):
        answers, _ = answer(30, reject_below=threshold)
        best = answers.probabilities.max(axis=1)
        assert (answers.rejected == (best < threshold)).all()


def test_nearest_supports_come_nearest_first():
    support, _, _ = make_task()
    own = support.features[[4, 7]]
    answers = classify(support, Pictures(own), Options(transductive=False))
    assert answers.nearest[:, 0].tolist() == [4, 7]
    assert answers.nearest.shape == (2, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transductive": "maybe"}, "use auto, True, False"),
        ({"method": "rdc_pluss"}, "did you mean rdc_plus"),
        ({"method": "logistic"}, "use rdc_plus or rdc"),
        ({"temperature": 0.0}, "use a number above 0"),
        ({"temperature": float("nan")}, "use a number above 0"),
        ({"reject_below": 1.5}, "use a number from 0 to 1"),
        ({"unknown_above": -0.1}, "use a number from 0 to 1"),
        ({"batch_size": 0}, "use at least 1"),
    ],
)
def test_mistakes_are_told(options, message):
    with pytest.raises(UserError, match=message):
        Options(**options)


def test_probabilities_are_those_of_the_predicted_class():
    answers, _ = answer(30)
    assert (answers.probabilities.argmax(axis=1) == answers.predicted).all()
    np.testing.assert_allclose(answers.probabilities.sum(axis=1), 1)


def test_accuracy_is_told_where_the_truth_is_known():
    answers, labels = answer(30, reject_below=0.9)
    assert "accuracy" not in answers.summary and "accuracy" not in sum_up(answers)[0]
    paths = tuple(f"{NAMES[label]}/{i}.jpg" for i, label in enumerate(labels))
    known = dataclasses.replace(answers, query=answers.query._replace(names=paths))
    right = answers.predicted == labels
    assert known.summary["accuracy"] == pytest.approx(100 * right.mean(), abs=0.01)
    assert f"({right.sum()} of 30)" in sum_up(known)[1]
    sure = ~answers.rejected
    assert f"({right[sure].sum()} of {sure.sum()})" in sum_up(known)[1]


def test_a_method_is_advised():
    answers, _ = answer(30)
    assert answers.advice.queries == 30
    assert sum_up(answers)[-1] == f"advised: {answers.advice}"


@pytest.mark.parametrize("threshold", [0.29, 0.5, 0.57])
def test_what_is_below_a_threshold_does_not_look_as_if_it_reached_it(threshold):
    assert percent(threshold) == f"{threshold:.0%}"
    assert int(percent(threshold - 1e-4)[:-1]) < 100 * threshold - 0.5
