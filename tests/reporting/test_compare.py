"""Two runs are compared task by task, or refused in one line."""

import json
import sys

import numpy as np
import pytest
from reporting.made import make_results, row, write_run
from scipy import stats

from rdc_jax.reporting import __main__ as program
from rdc_jax.reporting import compare
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

QUERIES = 75
DATASETS = ("cub", "my photos")


def make_run(workdir, counts, *, datasets=DATASETS, **config):
    """A run of the methods in ``counts``: right answers by data set and task."""
    rows = [row(name, 1, method, 50.0) for name in datasets for method in counts]
    lines = [",".join(["dataset", "shot", "task", "queries", *counts])]
    for place, name in enumerate(datasets):
        for task, right in enumerate(zip(*counts.values(), strict=True)):
            cells = [str(each[place]) for each in right]
            lines.append(",".join([name, "1", str(task), str(QUERIES), *cells]))
    text = "\n".join(lines) + "\n"
    results = make_results(rows, **config) | {"tasks": checksums.of_json(text)}
    write_run(workdir, results)
    (workdir / "tasks.csv").write_text(text)
    return workdir


def draw(seed, tasks=40):
    return np.random.default_rng(seed).integers(20, QUERIES, (tasks, len(DATASETS)))


@pytest.fixture
def runs(tmp_path):
    """Two runs with RDC in common; the second one has fewer tasks."""
    one = make_run(tmp_path / "one", {"npc": draw(0), "rdc": draw(1)})
    other = make_run(tmp_path / "other", {"rdc": draw(2, 30), "mine": draw(3, 30)})
    return one, other


def test_differences_are_paired_over_the_tasks_that_both_have(runs):
    found = compare.compare(*runs)
    assert [(r["dataset"], r["method"]) for r in found["rows"]] == [
        (name, "rdc") for name in DATASETS
    ]
    for place, got in enumerate(found["rows"]):
        a, b = (100 * draw(s, t)[:30, place] / QUERIES for s, t in ((1, 40), (2, 30)))
        want = stats.ttest_rel(b, a)
        low, high = want.confidence_interval(0.95)
        assert got["difference"] == pytest.approx((low + high) / 2)
        assert got["ci95"] == pytest.approx((high - low) / 2)
        assert (got["a"], got["b"]) == pytest.approx((a.mean(), b.mean()))
        assert (got["better"], got["worse"]) == ((b > a).sum(), (b < a).sum())
        assert got["tasks"] == 30
    (average,) = found["averages"]
    mean = np.mean([r["difference"] for r in found["rows"]])
    assert average["difference"] == pytest.approx(mean)


def test_a_run_equals_itself(runs):
    found = compare.compare(runs[0], runs[0])
    assert len(found["rows"]) == 4
    assert {(r["difference"], r["ci95"]) for r in found["rows"]} == {(0.0, 0.0)}
    assert "better" not in compare.text(found)


def test_the_other_way_round_only_the_sign_differs(runs):
    there, back = compare.compare(*runs), compare.compare(*reversed(runs))
    for one, other in zip(there["averages"], back["averages"], strict=True):
        assert one["difference"] == pytest.approx(-other["difference"])
        assert one["ci95"] == pytest.approx(other["ci95"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, "config.seed is 7 in .*one and 8 in .*other"),
        ({"way": 10}, "config.way is 5 in .* and 10 in"),
        ({"query": 5}, "config.query is 15"),
        ({"dirichlet": 0.5}, "config.dirichlet is 0.0 in .* and 0.5 in"),
    ],
)
def test_other_tasks_are_refused(tmp_path, change, message):
    one = make_run(tmp_path / "one", {"rdc": draw(0)})
    other = make_run(tmp_path / "other", {"rdc": draw(0)}, **change)
    with pytest.raises(UserError, match=rf"different tasks: {message}") as caught:
        compare.compare(one, other)
    assert "\n" not in str(caught.value)


def test_other_images_are_refused(tmp_path):
    one = make_run(tmp_path / "one", {"rdc": draw(0)})
    other = make_run(tmp_path / "other", {"rdc": draw(0)})
    results = json.loads((other / "results.json").read_text())
    results["provenance"]["data"]["cub"] = "ee" * 16
    (other / "results.json").write_text(json.dumps(results))
    with pytest.raises(UserError, match=r"the content of cub is d1d1.* and eeee"):
        compare.compare(one, other)


def test_nothing_in_common_is_refused(tmp_path):
    one = make_run(tmp_path / "one", {"rdc": draw(0)})
    other = make_run(tmp_path / "other", {"npc": draw(0)})
    with pytest.raises(UserError, match=r"no data set, shot and method in common.*npc"):
        compare.compare(one, other)


def test_tasks_of_other_results_are_refused(runs):
    path = runs[1] / "tasks.csv"
    path.write_text(path.read_text().replace("75,", "74,", 1))
    with pytest.raises(UserError, match=r"tasks.csv is not of these results.*again"):
        compare.compare(*runs)
    path.unlink()
    with pytest.raises(UserError, match=r"cannot read .*tasks.csv"):
        compare.compare(*runs)


def test_the_program_prints_a_table_or_json(runs, monkeypatch, capsys):
    command = ["reporting", "compare", *map(str, runs)]
    monkeypatch.setattr(sys, "argv", command)
    program.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("A: one, Made up (84 px), resnet10 c0ffee")
    assert [line.split()[:3] for line in lines[5:]] == [
        ["1", "cub", "rdc"],
        ["1", "my", "photos"],
        ["1", "average", "rdc"],
    ]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    program.main()
    assert json.loads(capsys.readouterr().out) == compare.compare(*runs)
