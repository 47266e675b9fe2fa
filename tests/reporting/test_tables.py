"""Tables hold the numbers of the results, marked for what they are."""

import pytest
from reporting.made import make_run, pair, row

from rdc_jax.evaluation import published
from rdc_jax.reporting import settings, tables


def texts(line):
    return [cell.text for cell in line.cells]


def test_accuracies_stand_above_the_paper_s():
    found = tables.accuracies(make_run(), 1)
    assert found.columns == ["method", "cub", "my photos", "average"]
    assert [(line.head, line.published) for line in found.lines] == [
        ("NPC + l2 norm", False),
        ("NPC + l2 norm", True),
        ("RDC", False),
        ("RDC", True),
    ]
    assert texts(found.lines[2]) == ["43.00", "50.20", "46.60"]
    assert found.lines[2].cells[0].small == "± 1.00"
    paper = next(
        r
        for r in published.content()["rows"]
        if (r["method"], r["shot"], r["dataset"]) == ("rdc", 1, "cub")
    )
    # The paper has no such photos, and its average is of something else.
    assert texts(found.lines[3]) == [f"{paper['accuracy']:.2f}", "", "48.65"]
    assert found.lines[3].cells[-1].small == "its own 8"


def test_the_best_of_ours_stands_out_in_each_column():
    found = tables.accuracies(make_run(), 5)
    styles = [[cell.style for cell in line.cells] for line in found.lines]
    assert styles[0] == ["best", "best", "best"]  # NPC + l2 norm
    assert styles[2] == ["", "", ""]
    assert styles[1] == styles[3] == ["", "", ""]  # the paper's


def test_the_paper_s_average_is_shown_for_its_own_data_sets():
    names = dict.fromkeys(r["dataset"] for r in published.content()["rows"])
    run = make_run([r for name in names for r in pair(name, 1, (1.0, 0.5))])
    line = tables.accuracies(run, 1).lines[1]
    (average,) = [
        r["accuracy"]
        for r in published.content()["averages"]
        if (r["method"], r["shot"]) == ("npc_l2", 1)
    ]
    assert line.published and line.cells[-1].text == f"{average:.2f}"
    assert line.cells[-1].small == ""  # of the same data sets as ours


def test_tasks_of_another_kind_are_not_held_against_the_paper():
    lines = tables.accuracies(make_run(way=10), 1).lines
    assert not any(line.published for line in lines)


def test_gains_tell_won_drawn_and_lost_tasks_and_a_verdict():
    found = tables.paired(make_run(), 5)
    assert found.lines[1].head == "my photos"
    assert texts(found.lines[1]) == [
        "RDC",
        "\N{MINUS SIGN}2.00",
        "▼ hurts",
        "60",
        "10",
        "30",
    ]
    assert found.lines[1].cells[1].sort == -2.0
    assert texts(found.lines[0])[2] == "● not clear"


def test_all_methods_are_seen_at_a_glance():
    found = tables.glance(make_run())
    assert [(line.head, *texts(line)[:3]) for line in found.lines] == [
        ("NPC + l2 norm", "1", "45.00", "baseline"),
        ("RDC", "1", "46.60", "+1.60"),
        ("NPC + l2 norm", "5", "65.00", "baseline"),
        ("RDC", "5", "63.95", "\N{MINUS SIGN}1.05"),
    ]
    assert texts(found.lines[1])[3:] == ["1", "0", "1"]


def test_gains_by_purity_have_a_verdict():
    run = make_run()
    assert not tables.by_purity(run, 1).lines  # Older results have none.
    row = {"shot": 1, "from": 30, "to": 50, "title": "RDC", "episodes": 40}
    run.results["purity"] = [row | {"gain": -2.0, "gain_ci95": 0.5}]
    (line,) = tables.by_purity(run, 1).lines
    assert line.head == "30 to 50%"
    assert [cell.text for cell in line.cells[:3]] == ["RDC", "40", "\N{MINUS SIGN}2.00"]
    assert line.cells[3].style == "hurts"
    assert not tables.by_purity(run, 5).lines


def test_neighbours_without_any_leave_cells_empty():
    run = make_run()
    run.results["neighbours"][0]["purity_after"] = None
    found = tables.neighbours(run, 1)
    assert texts(found.lines[0]) == ["50.0%", "", "6.0", "8.0", "12.0%"]
    assert found.lines[0].cells[1].sort is None


def test_steps_are_columns():
    curves = [
        {"dataset": "a", "shot": 1, "method": "rdc_ft", "step": s, "accuracy": 40.0 + s}
        | {"ci95": 0.5}
        for s in (0, 10)
    ]
    rows = [row("a", 1, "npc_l2", 40.0), row("a", 1, "rdc_ft", 50.0, (10.0, 1.0))]
    found = tables.steps(make_run(rows, curves=curves), 1)
    assert found.columns == ["data set", "method", "step 0", "step 10"]
    assert texts(found.lines[0]) == ["RDC-FT", "40.00", "50.00"]


def test_runs_are_named_in_the_overview():
    found = tables.overview([make_run(), make_run()], ["one", "two"])[0]
    assert [line.head for line in found.lines] == 4 * ["one"] + 4 * ["two"]
    assert texts(found.lines[1])[:2] == ["RDC", "2"]


def test_runs_stand_side_by_side_by_data_set():
    other = make_run([row("isic", 5, "npc", 33.0), row("cub", 5, "npc", 44.0)])
    _, one, five = tables.overview([make_run(), other], ["one", "two"])
    assert five.columns == ["run", "method", "cub", "my photos", "isic"]
    assert [(line.head, *texts(line)) for line in five.lines] == [
        ("one", "NPC + l2 norm", "60.00", "70.00", ""),
        ("one", "RDC", "59.90", "68.00", ""),
        ("two", "npc", "44.00", "", "33.00"),
    ]
    assert len(one.lines) == 2  # the other run has no such tasks


def test_no_private_place_is_shown():
    shown = dict(settings.fields(make_run()))
    assert shown["config.data_dir"] == "…/data"
    assert shown["config.datasets"] == "cub,…/my photos"
    assert shown["config.pretrain.init_from"] == "…/weights.tar"
    assert shown["config.checkpoint"] == "…/backbone"
    assert not any("ann" in text or "home" in text for text in shown.values())


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("checkpoint", r"C:\Users\ann\399.tar", "…/399.tar"),
        ("data_dir", "~/data/", "…/data"),
        ("datasets", "tfds:eurosat/rgb,synthetic:glyphs", None),
        ("datasets", "cub,../birds", "cub,…/birds"),
        ("data_dir", "data", None),
        ("title", "50/50", None),
    ],
)
def test_places_are_told_from_names(field, value, expected):
    assert settings.hide_places(field, value) == (expected or value)


def test_readings_name_what_is_not_the_default():
    run = make_run()
    run.config["rdc"] |= {"k": 6}
    found = settings.readings(run)
    assert list(found) == ["config.rdc"]  # nothing was fine-tuned
    assert [r.field for r in found["config.rdc"] if r.default] == ["k"]
    assert (found["config.rdc"][0].value, found["config.rdc"][0].default) == ("6", "10")
    assert all(reading.meaning for reading in found["config.rdc"])


def test_fine_tuning_has_readings_where_there_was_some():
    run = make_run(trained=("rdc_ft",))
    run.config["finetune"] |= {"batch_norm": "batch"}
    found = settings.readings(run)["config.finetune"]
    assert [r.field for r in found if r.default] == ["batch_norm"]
    assert all(reading.meaning for reading in found)


def test_origins_have_fingerprints_and_versions():
    found = dict(settings.origins(make_run()))
    assert found["checkpoint fingerprint"] == "c0ffee" * 8
    assert found["its training"] == "on glyphs, 84 px"
    assert found["fingerprint of my photos"] == "d2" * 16
    assert found["jax"] == "1.2.3"
