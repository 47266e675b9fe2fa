"""The paper's numbers: what is in the file, and what a run is held against."""

import numpy as np
import pytest

from rdc_jax.evaluation import published

# What the paper's own averages are not the means of: two misprints, and RDC without
# the subspace, whose rows and averages stand in different tables.
APART = {
    (5, "npc_subspace(dim=64)"): 0.02,
    (5, "rdc_ft(alpha=0.9)"): 0.02,
    (1, "rdc_one_space"): 0.11,
    (5, "rdc_one_space"): 0.07,
}
EIGHT = ("cub", "cars", "places", "plantae", "cropdisease", "eurosat", "isic", "chestx")


def lines(method, shot=1, names=EIGHT, *, way=5, systems=False):
    rows = [
        {"dataset": name, "shot": shot, "method": method, "title": method}
        for name in names
    ]
    return published.collect(rows, way=way, systems=systems)["lines"]


def line(*args, **kwargs):
    return next(iter(lines(*args, **kwargs)), None)


def systems(names=EIGHT, **kwargs):
    found = lines("mine", 5, names, systems=True, **kwargs)
    return {one["title"]: one for one in found}


def test_averages_are_those_of_the_rows():
    compared = 0
    for row in published.content()["averages"]:
        key = (row["shot"], row["method"])
        found = line(row["method"], row["shot"])
        if found["rows"]:  # Some tables are printed as averages alone.
            own = [found["rows"][name]["accuracy"] for name in EIGHT]
            # The paper rounds before it averages, or after.
            near = pytest.approx(row["accuracy"], abs=APART.get(key, 0.011))
            assert np.mean(own) == near
            compared += 1
    assert compared > 40


def test_averages_of_systems_are_those_of_their_rows():
    found = systems()
    assert len(found) == 5
    for one in found.values():
        own = [one["rows"][name]["accuracy"] for name in EIGHT]
        assert one["average"] == pytest.approx(np.mean(own), abs=0.011)


def test_only_data_sets_of_the_run_are_given():
    found = line("rdc", names=("cub", "my photos"))
    assert found["rows"] == {"cub": {"accuracy": 48.68, "ci95": 0.5}}
    assert (found["average"], found["same"]) == (48.65, False)
    assert line("rdc", names=EIGHT[::-1])["same"]
    assert list(systems(("cub", "mine"))["GNN+FT"]["rows"]) == ["cub"]


def test_some_tables_are_averages_alone_and_one_has_none():
    found = line("rdc_ft_one_space")
    assert (found["rows"], found["average"], found["same"]) == ({}, 51.03, True)
    assert line("rdc(subspace=tanh)", 5)["average"] == 59.83
    augmented = line("rdc_da", 5)
    assert len(augmented["rows"]) == 8 and augmented["average"] is None


def test_components_are_those_of_table_3():
    names = ("npc", "rdc_one_space", "rdc", "rdc_ft_one_space", "rdc_ft")
    assert [line(name, 1)["average"] for name in names] == [
        *(39.72, 47.71, 48.65, 51.03, 51.53)
    ]
    assert [line(name, 5)["average"] for name in names] == [
        *(57.42, 58.97, 60.06, 62.91, 63.70)
    ]


def test_other_tasks_and_other_data_are_compared_with_nothing():
    assert line("rdc", way=10) is None and systems(way=10) == {}
    assert line("rdc", names=("synthetic:glyphs",)) is None
    assert systems(("synthetic:glyphs",)) == {}
    assert line("my_method") is None and line("rdc", shot=3) is None
    assert lines("my_method", systems=False) == []


def test_notes_say_what_the_lines_are_of():
    rows = [{"dataset": "cub", "shot": 1, "method": "finetune(steps=9)", "title": "x"}]
    found = published.collect(rows, way=5, systems=True)
    notes = published.content()["notes"]
    wanted = [published.content()["note"], notes["finetune"], notes["systems"]]
    assert found["notes"] == wanted
    assert published.collect(rows, way=4, systems=True)["notes"] == []
