"""Confusions of classes, against scikit-learn and plain loops."""

import numpy as np
import pytest
from sklearn import metrics

from rdc_jax.evaluation.confusion import Answered

TASKS, WAY, QUERIES = 40, 3, 12
NAMES = ("ant", "bee", "cat", "dog", "eel", "fly")  # No task has flies.


@pytest.fixture(scope="module")
def answered():
    """Uneven tasks; some answers are missing, some queries are of no class."""
    rng = np.random.default_rng(0)
    labels = rng.choice(WAY, (TASKS, QUERIES), p=[0.7, 0.2, 0.1])
    labels[0] = 1
    answers = np.where(rng.random(labels.shape) < 0.6, labels, (labels + 1) % WAY)
    answers[1, :4] = -1
    labels[2, :5] = -1
    classes = np.stack([rng.permutation(5)[:WAY] for _ in range(TASKS)])
    return made(classes, labels, answers)


def made(classes, labels, answers):
    return Answered(
        class_names=NAMES,
        image_names=(),
        image_classes=np.zeros(0, int),
        pixels=np.zeros((0, 1, 1, 3), np.uint8),
        classes=classes,
        images=np.zeros_like(labels),
        labels=labels,
        answers={"rdc": answers},
    )


def pairs(answered, task):
    """Labels and answers of the queries that have a label."""
    known = answered.labels[task] >= 0
    return answered.labels[task][known], answered.answers["rdc"][task][known]


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_measures_are_means_of_scikit_learn_s(answered):
    row = answered.rows("rdc")
    tasks = [pairs(answered, task) for task in range(TASKS)]
    balanced = [metrics.balanced_accuracy_score(*task) for task in tasks]
    # A query without an answer is a miss of its class, and no class of its own.
    f1 = [
        metrics.f1_score(
            *(label, answer),
            labels=[c for c in range(WAY) if c in label or c in answer],
            average="macro",
        )
        for label, answer in tasks
    ]
    assert row["balanced_accuracy"] == pytest.approx(100 * np.mean(balanced))
    assert row["macro_f1"] == pytest.approx(100 * np.mean(f1))
    assert row["macro_f1_ci95"] > 0 and row["balanced_accuracy_ci95"] > 0


def test_in_even_tasks_the_balanced_accuracy_is_the_accuracy(answered):
    labels = np.tile(np.arange(QUERIES) % WAY, (TASKS, 1))
    even = made(answered.classes, labels, answered.answers["rdc"])
    accuracy = 100 * (labels == answered.answers["rdc"]).mean()
    assert even.rows("rdc")["balanced_accuracy"] == pytest.approx(accuracy)


def test_confusions_are_counted_by_the_data_set_s_classes(answered):
    counts = np.zeros((6, 6), int)
    asked = np.zeros(6, int)
    for task in range(TASKS):
        own = answered.classes[task]
        for label, answer in zip(*pairs(answered, task), strict=True):
            asked[own[label]] += 1
            if answer >= 0:
                counts[own[label], own[answer]] += 1
    found = answered.confusion("rdc")
    assert found["confusion"] == counts.tolist()
    shares = 100 * np.diagonal(counts)[:5] / asked[:5]
    assert found["class_accuracy"][:5] == pytest.approx(shares.tolist())
    assert found["class_accuracy"][5] is None


def test_confused_pairs_are_shares_of_the_tasks_with_both(answered):
    counts, met = np.zeros((6, 6), int), np.zeros((6, 6), int)
    for task in range(TASKS):
        own = answered.classes[task]
        for label, answer in zip(*pairs(answered, task), strict=True):
            met[own[label], own] += 1
            if answer not in (-1, label):
                counts[own[label], own[answer]] += 1
    found = answered.confusion("rdc")["confused"]
    pairs_found = [(NAMES.index(r["class"]), NAMES.index(r["answer"])) for r in found]
    for (i, j), row in zip(pairs_found, found, strict=True):
        assert row["queries"] == met[i, j]
        assert row["share"] == pytest.approx(100 * counts[i, j] / met[i, j])
    usual = counts.sum() / (met.sum() - np.diagonal(met).sum())
    doubted = np.where(counts > 0, (counts + 40 * usual) / (met + 40), 0)
    ranks = [doubted[pair] for pair in pairs_found]
    assert ranks == pytest.approx(np.sort(doubted.ravel())[::-1][:10].tolist())
