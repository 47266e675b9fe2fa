"""Every query's answers, as pandas reads them, and what the report shows of them."""

import csv
import shutil

import numpy as np
import pandas as pd
import pytest
import tiny

from rdc_jax.evaluation.run import evaluate
from rdc_jax.models import BACKBONES

TASKS, WAY, QUERIES = 6, 5, 20
METHODS = ("npc_l2", "rdc_one_space")


@pytest.fixture(scope="module")
def keeping(make_config):
    """A small evaluation that keeps predictions."""
    config = make_config()
    config.update(episodes=TASKS, predictions=True)
    return config


@pytest.fixture(scope="module")
def run(keeping, tmp_path_factory):
    """Its work directory, and its results."""
    workdir = tmp_path_factory.mktemp("keeping") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
        return workdir, evaluate(keeping.to_dict(), workdir)


@pytest.fixture(scope="module")
def table(run):
    return pd.read_parquet(run[0] / "predictions.parquet")


def content(workdir):
    files = ("ledger.jsonl", "results.json", "predictions.parquet", "hardest.npz")
    return {name: (workdir / name).read_bytes() for name in files}


def test_there_is_a_row_a_query_and_method(table):
    keys = ["dataset", "shot", "method", "task", "query"]
    assert len(table) == 2 * len(METHODS) * TASKS * QUERIES
    assert not table.duplicated(keys).any()
    assert tuple(table["method"].unique()) == METHODS
    assert set(table["shot"]) == {1, 2} and set(table["dataset"]) == {"photos"}
    assert table["task"].max() == TASKS - 1 and table["query"].max() == QUERIES - 1
    # An image is in a folder of its class, and no query twice in a task.
    folders = table["image"].astype(str).str.split("/").str[0]
    assert (folders == table["class"].astype(str)).all()
    assert not table.duplicated([*keys[:4], "image"]).any()


def test_answers_are_the_nearest_classes_and_right_as_in_the_tasks(run, table):
    distances = table.filter(like="distance_").to_numpy()
    nearest = distances.argmin(axis=1)
    classes = table[[f"class_{c}" for c in range(WAY)]].astype(str).to_numpy()
    rows = np.arange(len(table))
    assert (classes[rows, nearest] == table["answer"].astype(str)).all()
    assert table["known"].all()
    assert (table["unknown_score"] == distances.min(axis=1)).all()
    assert (table["right"] == (table["answer"].astype(str) == table["class"])).all()
    with (run[0] / "tasks.csv").open() as file:
        for line in csv.DictReader(file):
            for method in METHODS:
                own = table[
                    (table["shot"] == int(line["shot"]))
                    & (table["task"] == int(line["task"]))
                    & (table["method"] == method)
                ]
                assert own["right"].sum() == int(line[method])


def test_the_hardest_images_are_wrong_most_often(run, table):
    workdir, found = run
    rows = [row for row in found["hardest"] if row["shot"] == 1]
    own = table[table["shot"] == 1]
    shares = 1 - own.groupby("image", observed=True)["right"].mean()
    tasks = own.groupby("image", observed=True).size() / len(METHODS)
    usual = 1 - own["right"].mean()
    doubt = (shares * tasks + 2 * usual) / (tasks + 2)
    assert 0 < len(rows) <= 12
    listed = doubt[[row["image"] for row in rows]]
    assert listed.to_numpy() == pytest.approx(np.sort(doubt)[::-1][: len(rows)])
    for row in rows:
        asked = own[own["image"] == row["image"]]
        assert row["tasks"] == len(asked) / len(METHODS)
        wrong = asked[~asked["right"]]
        assert row["class"] == asked["class"].iloc[0]
        assert row["wrong"] == {m: (wrong["method"] == m).sum() for m in METHODS}
        given = wrong["answer"].value_counts()
        assert given[row["answer"]] == given.max()
    with np.load(workdir / "hardest.npz") as jpegs:
        assert len(jpegs.files) == len(found["hardest"])
        assert jpegs["0"].tobytes().startswith(b"\xff\xd8")


def test_they_are_the_same_bytes_after_a_kill(run, keeping, tmp_path, monkeypatch):
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    whole = content(run[0])
    workdir = shutil.copytree(run[0], tmp_path / "run")
    lines = whole["ledger.jsonl"].splitlines(keepends=True)
    (workdir / "ledger.jsonl").write_bytes(b"".join(lines[:5]))
    (workdir / "predictions.parquet").unlink()
    one = min((workdir / "answers").glob("*.distances"))
    one.write_bytes(one.read_bytes()[:1000])
    evaluate(keeping.to_dict(), workdir)
    assert content(workdir) == whole


def test_they_can_be_asked_for_later(run, make_config, tmp_path, monkeypatch):
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    config = make_config()
    config.update(episodes=TASKS)
    evaluate(config.to_dict(), tmp_path / "run")
    assert not (tmp_path / "run/predictions.parquet").exists()
    config.predictions = True
    evaluate(config.to_dict(), tmp_path / "run")
    later, before = (w / "predictions.parquet" for w in (tmp_path / "run", run[0]))
    assert later.read_bytes() == before.read_bytes()
