"""Telling queries of no class from the others, against scikit-learn and plain loops."""

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from rdc_jax.core.prototypes import unknown_scores
from rdc_jax.evaluation import unknown
from rdc_jax.evaluation.run import evaluate

KNOWN, FOREIGN = 20, 7


def task(seed):
    """Distances of queries, of which seven are of no class and somewhat farther."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.r_[rng.integers(0, 3, KNOWN), np.full(FOREIGN, -1)])
    distances = rng.normal(5, 1, (len(labels), 3)) + 0.7 * (labels[:, None] < 0)
    return distances.round(1).astype(np.float32), labels  # Rounded, so that some tie.


def test_scores_are_distances_to_the_nearest_class():
    scores = unknown_scores(np.array([[2.0, 1.0], [np.nan, 0.0], [np.inf, 3.0]]))
    assert scores.tolist() == [1.0, np.inf, 3.0]


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_scikit_learn(seed):
    distances, labels = task(seed)
    pairs, passed = jax.jit(unknown.count)(distances, labels)
    score = distances.min(axis=1)
    want = metrics.roc_auc_score(labels < 0, score)
    assert pairs / (2 * KNOWN * FOREIGN) == pytest.approx(want)
    # Known ones are accepted up to a score; take the first that accepts 95% of them.
    false, true, _ = metrics.roc_curve(labels >= 0, -score, drop_intermediate=False)
    assert passed / FOREIGN == pytest.approx(false[np.flatnonzero(true >= 0.95)[0]])


def test_padding_counts_for_nothing():
    distances, labels = task(0)
    more = np.concatenate([distances, np.zeros((5, 3), np.float32)])
    padded = np.concatenate([labels, np.full(5, -2)])
    count = jax.jit(unknown.count)
    assert [*map(int, count(more, padded))] == [*map(int, count(distances, labels))]


def test_rows_are_means_over_tasks():
    tasks = [task(seed) for seed in range(6)]
    counts = np.array([jax.jit(unknown.count)(*each) for each in tasks]).T
    columns = dict(zip(unknown.columns("rdc"), counts, strict=True))
    row = unknown.row(columns, "rdc", KNOWN, FOREIGN)
    auroc = [metrics.roc_auc_score(y < 0, d.min(axis=1)) for d, y in tasks]
    assert row["auroc"] == pytest.approx(100 * np.mean(auroc))
    assert row["auroc_ci95"] > 0
    assert row["fpr95"] == pytest.approx(100 * counts[1].mean() / FOREIGN)


def test_an_evaluation_measures_it_on_the_same_tasks(config, tmp_path):
    config.update(way=3, shots="1", episodes=8, methods="npc_l2,rdc_one_space")
    plain = evaluate(config.to_dict(), tmp_path / "plain")
    config.update(distractor_queries=6, predictions=True)
    found = evaluate(config.to_dict(), tmp_path / "run")
    assert "auroc" not in plain["rows"][0]
    before, after = (each["rows"][0] for each in (plain, found))
    # A method that is not transductive answers for the known ones as it did.
    assert before["method"] == "npc_l2" and before["accuracy"] == after["accuracy"]
    assert before["macro_f1"] == after["macro_f1"]
    for row in found["rows"]:
        assert 0 < row["auroc"] < 100 and 0 <= row["fpr95"] <= 100
    assert found["averages"][0]["auroc"] == after["auroc"]
    table = pd.read_parquet(tmp_path / "run/predictions.parquet")
    own = table[table["method"] == "rdc_one_space"]
    foreign = own[~own["known"]]
    assert foreign.groupby("task").size().tolist() == [6] * 8
    classes = foreign[["class_0", "class_1", "class_2"]].astype(str).to_numpy()
    assert not (classes == foreign[["class"]].astype(str).to_numpy()).any()
    assert not foreign["right"].any()
    auroc = [
        metrics.roc_auc_score(~each["known"], each["unknown_score"])
        for _, each in own.groupby("task")
    ]
    assert found["rows"][1]["auroc"] == pytest.approx(100 * np.mean(auroc))
    text = (tmp_path / "run/table.md").read_text()
    assert f"{after['auroc']:.2f} ± {after['auroc_ci95']:.2f}" in text


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["python", "compiled"])
def test_methods_that_fit_the_network_are_measured_too(config, tmp_path, loop):
    config.update(way=3, shots="1", episodes=3, methods="npc_l2,rdc_ft")
    config.update(distractor_queries=6, predictions=True)
    config.finetune.update(steps=2, record="1", learning_rate=1e-2, loop=loop)
    found = evaluate(config.to_dict(), tmp_path / "run")
    table = pd.read_parquet(tmp_path / "run/predictions.parquet")
    own = table[table["method"] == "rdc_ft"]
    assert len(own) == 3 * (3 * 4 + 6)
    nearest = own.filter(like="distance_").to_numpy().argmin(axis=1)
    classes = own.filter(like="class_").astype(str).to_numpy()
    assert (classes[np.arange(len(own)), nearest] == own["answer"].astype(str)).all()
    auroc = [
        metrics.roc_auc_score(~each["known"], each["unknown_score"])
        for _, each in own.groupby("task")
    ]
    row = found["rows"][1]
    assert row["auroc"] == pytest.approx(100 * np.mean(auroc))
    right = own[own["known"]].groupby("task")["right"].mean()
    assert row["accuracy"] == pytest.approx(100 * right.mean())
    assert [curve["step"] for curve in found["curves"]] == [1, 2]
