"""Results files: right numbers, from the ledger alone."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from rdc_jax.configs import eval as eval_config
from rdc_jax.core import statistics
from rdc_jax.evaluation import diagnostics, results, table
from rdc_jax.evaluation.confusion import Answered
from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.evaluation.options import Options

EPISODES, QUERIES = 40, 25
DATASETS = ("cub", "my_photos")


@pytest.fixture
def options():
    config = eval_config.get_config("test")
    config.update(
        checkpoint="x", methods="npc,npc_l2,rdc", episodes=EPISODES, datasets="a,b"
    )
    return Options.from_config(config.to_dict())


@pytest.fixture
def ledger(tmp_path, options):
    columns = ["npc", "npc_l2", "rdc", *diagnostics.COLUMNS]
    header = {
        "config": eval_config.get_config("test").to_dict()
        | {"episodes": EPISODES, "methods": "npc,npc_l2,rdc"},
        "checkpoint": {"arch": "resnet10", "fingerprint": "0123456789abcdef"},
        "data": {"cub": "c0ffee"},
        "backend": {"platform": "cpu", "device": "cpu"},
        "versions": {"jax": "1.0"},
    }
    rng = np.random.default_rng(0)
    with Ledger(tmp_path / "ledger.jsonl", header) as ledger:
        ledger.begin("features", {"columns": columns})
        for shot in options.shots:
            for dataset in DATASETS:
                right = rng.integers(5, QUERIES + 1, (EPISODES, 3))
                sets = np.tile([50, 40, 80, 60, 100, 1250, 3, 6], (EPISODES, 1))
                counts = np.concatenate([right, sets], axis=1)
                ledger.append(Stage(dataset, shot, "features"), counts)
        yield ledger


def find(dataset, shot):
    """Tasks with answers, as if they were of the ledger."""
    rng = np.random.default_rng(shot)
    labels, answers = rng.integers(5, size=(2, EPISODES, QUERIES))
    classes = np.stack([rng.permutation(7)[:5] for _ in range(EPISODES)])
    names = ("npc", "npc_l2", "rdc")
    return Answered(
        class_names=tuple("abcdefg"),
        image_names=(),
        image_classes=np.zeros(0, int),
        pixels=np.zeros((0, 1, 1, 3), np.uint8),
        classes=classes,
        images=np.zeros_like(labels),
        labels=labels,
        answers=dict.fromkeys(names, answers),
    )


@pytest.fixture
def found(tmp_path, ledger, options):
    return results.write(tmp_path, ledger, options, DATASETS, find)


def test_rows_are_those_of_the_contract(found):
    assert [(r["shot"], r["dataset"], r["method"]) for r in found["rows"]] == [
        (shot, dataset, method)
        for shot in (1, 5)
        for dataset in DATASETS
        for method in ("npc", "npc_l2", "rdc")
    ]
    needed = {"dataset", "shot", "method", "episodes", "accuracy", "ci95"}
    assert all(needed <= row.keys() for row in found["rows"])
    assert all(row["episodes"] == EPISODES for row in found["rows"])


def test_accuracies_and_gains_are_of_the_same_episodes(found, ledger):
    right = 100 * ledger.counts(Stage("cub", 5, "features"))[:, :3] / QUERIES
    row = next(
        row
        for row in found["rows"]
        if (row["dataset"], row["shot"], row["method"]) == ("cub", 5, "rdc")
    )
    assert (row["accuracy"], row["ci95"]) == statistics.mean(right[:, 2])
    gain = statistics.gain(right[:, 2], right[:, 1])
    assert row["baseline"] == "npc_l2"
    assert (row["gain"], row["gain_ci95"], row["wins"], row["losses"]) == gain


def test_the_baseline_has_no_gain_over_itself(found):
    assert all(("gain" in r) == (r["method"] != "npc_l2") for r in found["rows"])


def test_confusions_of_classes_are_there_for_every_method(found):
    answered = find("cub", 5)
    row = next(r for r in found["rows"] if (r["dataset"], r["shot"]) == ("cub", 5))
    assert answered.rows("npc").items() <= row.items()
    assert len(found["classes"]) == len(found["rows"])
    place = {"dataset": "cub", "shot": 5, "method": "npc", "title": "NPC"}
    assert place | answered.confusion("npc") in found["classes"]
    assert found["class_names"] == {name: list("abcdefg") for name in DATASETS}


def test_rows_of_matrices_are_lines(found, tmp_path):
    counts = find("cub", 1).confusion("npc")["confusion"]
    line = str(counts[0]).replace(" ", "")
    lines = (tmp_path / "results.json").read_text().splitlines()
    assert line in [each.strip(" ,") for each in lines]


def test_averages_are_over_data_sets(found):
    mine = [
        r["accuracy"] for r in found["rows"] if (r["shot"], r["method"]) == (1, "rdc")
    ]
    average = found["averages"][2]
    assert (average["shot"], average["method"], average["datasets"]) == (1, "rdc", 2)
    assert average["accuracy"] == pytest.approx(sum(mine) / 2)


def test_average_gains_have_the_interval_of_independent_data_sets(found):
    rows = [r for r in found["rows"] if (r["shot"], r["method"]) == (1, "rdc")]
    average = found["averages"][2]
    assert (average["shot"], average["method"]) == (1, "rdc")
    assert average["gain"] == pytest.approx(np.mean([row["gain"] for row in rows]))
    gains = [(row["gain"], row["gain_ci95"]) for row in rows]
    want = statistics.average(gains, [row["episodes"] for row in rows])
    assert average["gain_ci95"] == want.ci95
    assert "gain" not in found["averages"][1]  # The baseline itself.
    line = f"{average['gain']:+.2f} ± {average['gain_ci95']:.2f}"
    assert line in table.markdown(found)


def test_one_task_has_no_interval_and_warns_of_no_loss(tmp_path, ledger, options):
    one = dataclasses.replace(options, episodes=1)
    found = results.write(tmp_path, ledger, one, DATASETS, find)
    assert all(row["ci95"] is None for row in found["rows"])
    assert all(row["gain_ci95"] is None for row in found["rows"] if "gain" in row)
    assert min(row.get("gain", 0) for row in found["rows"]) < 0
    assert not any("loses" in text for text in found["warnings"])
    lines = table.markdown(found).splitlines()
    assert not any("±" in line for line in lines if line.startswith("| RDC "))


def test_neighbours_are_summed_up(found):
    row = found["neighbours"][0]
    assert (row["dataset"], row["shot"]) == ("cub", 1)
    assert (row["purity_before"], row["purity_after"]) == (80.0, 75.0)
    assert row["neighbours_after"] == 80 / QUERIES
    assert row["jaccard_one"] == 100 * 100 / (QUERIES * 5)
    assert row["hub_skewness"] == 1.25
    assert (row["hubs"], row["anti_hubs"]) == (10.0, 20.0)  # Of 30 images a task.


def test_gains_by_purity_are_of_the_tasks_of_all_data_sets(found, ledger):
    right_t = np.concatenate(
        [ledger.counts(Stage(dataset, 1, "features"))[:, 1:3] for dataset in DATASETS]
    )
    want = statistics.gain(*(100 * right_t.T[::-1] / QUERIES))
    (row,) = [row for row in found["purity"] if row["shot"] == 1]
    assert (row["method"], row["from"], row["to"]) == ("rdc", 70, 100)
    assert row["episodes"] == len(right_t)
    assert (row["gain"], row["gain_ci95"]) == (want.mean, want.ci95)
    assert f"{want.mean:+.2f} ± {want.ci95:.2f}" in table.markdown(found)


def test_tasks_are_told_apart_by_purity(options):
    sizes = np.array([10, 10, 10, 10, 10, 10, 0])
    same = np.array([2, 2, 3, 6, 10, 10, 0])
    right = np.full(len(sizes), QUERIES // 2)
    counts = {"npc_l2": right, "rdc": right + same, "npc": right}
    counts |= {"members_after": sizes, "same_after": same}
    rows = diagnostics.gains_by_purity([counts], options, 1)
    assert [(row["from"], row["episodes"]) for row in rows] == [(0, 2), (70, 2)]
    gains = [row["gain"] * QUERIES / 100 for row in rows]
    np.testing.assert_allclose(gains, [2, 10])


def test_without_the_baseline_there_are_no_gains_by_purity(options):
    names = ("rdc", "members_after", "same_after")
    counts = dict.fromkeys(names, np.ones(3, int))
    assert diagnostics.gains_by_purity([counts], options, 1) == []
    assert diagnostics.gains_by_purity([], options, 1) == []


def test_files_hold_the_results_and_where_they_come_from(found, tmp_path, ledger):
    assert json.loads((tmp_path / "results.json").read_text()) == found
    methods = {"methods": "npc,npc_l2,rdc"}
    header = {**ledger.header, "config": ledger.header["config"] | methods}
    assert found["provenance"] == header
    assert (tmp_path / "table.md").read_text() == table.markdown(found)
    assert {p.name for p in tmp_path.iterdir()} == {
        "ledger.jsonl",
        "results.json",
        "table.md",
        "tasks.csv",
    }


def test_single_tasks_are_a_line_each(found, tmp_path, ledger):
    with (tmp_path / "tasks.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == EPISODES * len(DATASETS) * 2
    own = [line for line in lines if (line["dataset"], line["shot"]) == ("cub", "5")]
    assert [int(line["task"]) for line in own] == list(range(EPISODES))
    right = ledger.counts(Stage("cub", 5, "features"))[:, 2]
    assert [int(line["rdc"]) for line in own] == right.tolist()
    assert {int(line["queries"]) for line in lines} == {QUERIES}


def test_writing_again_gives_the_same_bytes(found, tmp_path, ledger, options):
    before = (tmp_path / "results.json").read_bytes()
    results.write(tmp_path, ledger, options, DATASETS, find)
    assert (tmp_path / "results.json").read_bytes() == before


def test_the_paper_s_numbers_stand_beside_ours_and_are_marked(found):
    lines = table.markdown(found).splitlines()
    published = [line for line in lines if "paper, 224 px" in line]
    assert len(published) == 6  # three methods, two shots
    assert "*RDC (paper, 224 px)*" in published[2]
    assert "*48.68 ± 0.50*" in published[2]  # cub has a number, my_photos has none
    assert published[2].split("|")[3].strip() == ""


def test_tasks_of_another_kind_are_not_compared_with_the_paper(
    tmp_path, ledger, options
):
    other = dataclasses.replace(options, way=4)
    found = results.collect(ledger, other, DATASETS, find)
    assert "paper" not in table.markdown(found)


def test_warnings_are_in_the_table(found):
    found["warnings"] = ["cub 1-shot: something is odd"]
    assert "- cub 1-shot: something is odd" in table.markdown(found)
