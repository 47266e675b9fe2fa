"""Tables hold the numbers of the results, marked for what they are."""

import pytest
from reporting.made import foreign, make_run, pair, row

from rdc_jax.evaluation import published
from rdc_jax.reporting import page, tables

MINUS = "\N{MINUS SIGN}"


def texts(line):
    return [cell.text for cell in line.cells]


def test_accuracies_stand_above_the_paper_s():
    found = tables.accuracies(make_run(), 1)
    assert found.columns == ["method", "cub", "my photos", "average", "gain"]
    assert [(line.head, line.note, line.published) for line in found.lines] == [
        ("NPC + l2 norm", "npc_l2", False),
        ("NPC + l2 norm", "", True),
        ("RDC", "", False),
        ("RDC", "", True),
    ]
    assert texts(found.lines[0])[-1] == "baseline"
    assert texts(found.lines[2]) == ["43.00", "50.20", "46.60", "▲ +1.60"]
    assert found.lines[2].cells[0].small == "± 1.00"
    paper = next(
        r
        for r in published.content()["rows"]
        if (r["method"], r["shot"], r["dataset"]) == ("rdc", 1, "cub")
    )
    # The paper has no such photos, and its average is of something else.
    assert texts(found.lines[3]) == [f"{paper['accuracy']:.2f}", "", "48.65", ""]
    assert found.lines[3].cells[2].small == "its own 8"


def test_hubs_stand_beside_purity():
    found = tables.hubs(make_run(), 1)
    assert [line.head for line in found.lines] == ["cub", "my photos"]
    assert texts(found.lines[0]) == ["50.0", "45.5", "0.75", "8.5", "3.0"]


def test_queries_of_no_class_have_a_line_a_method():
    made = [foreign(r, 60.0 + i) for i, r in enumerate(pair("cub", 1, (1.0, 0.5)))]
    found = tables.unknown(make_run(made, distractor_queries=15), 1)
    assert [line.head for line in found.lines] == ["NPC + l2 norm", "RDC"]
    assert texts(found.lines[1]) == ["61.00", "61.00"]
    assert found.lines[1].cells[0].small == "FPR@95 81%"
    assert not tables.unknown(make_run(), 1).lines


def test_the_best_of_ours_stands_out_in_each_column():
    found = tables.accuracies(make_run(), 5)
    best = [["best" in cell.style for cell in line.cells] for line in found.lines]
    assert best[0] == [True, True, True, False]  # NPC + l2 norm
    assert best[2] == [False, False, False, True]  # the only gain
    assert not any(best[1] + best[3])  # the paper's


def test_the_paper_s_average_is_shown_for_its_own_data_sets():
    names = dict.fromkeys(r["dataset"] for r in published.content()["rows"])
    run = make_run([r for name in names for r in pair(name, 1, (1.0, 0.5))])
    line = tables.accuracies(run, 1).lines[1]
    (average,) = [
        r["accuracy"]
        for r in published.content()["averages"]
        if (r["method"], r["shot"]) == ("npc_l2", 1)
    ]
    assert line.published and line.cells[-2].text == f"{average:.2f}"
    assert line.cells[-2].small == ""  # of the same data sets as ours


def test_tasks_of_another_kind_are_not_held_against_the_paper():
    lines = tables.accuracies(make_run(way=10), 1).lines
    assert not any(line.published for line in lines)


def test_gains_tell_won_drawn_and_lost_tasks_and_a_verdict():
    unclear, hurts = tables.gains(make_run(), 5).lines
    assert hurts.head == "my photos"
    assert texts(hurts) == ["RDC", f"▼ {MINUS}2.00", "60", "10", "30"]
    assert (hurts.cells[1].value, hurts.cells[1].style) == (-2.0, "hurts")
    assert texts(unclear)[1] == f"● {MINUS}0.10"


def test_gains_by_purity_have_a_verdict():
    run = make_run()
    assert not tables.by_purity(run, 1).lines  # Older results have none.
    row = {"shot": 1, "from": 30, "to": 50, "title": "RDC", "episodes": 40}
    run.results["purity"] = [row | {"gain": -2.0, "gain_ci95": 0.5}]
    (line,) = tables.by_purity(run, 1).lines
    assert line.head == "30 to 50%"
    assert texts(line) == ["RDC", "40", f"▼ {MINUS}2.00"]
    assert not tables.by_purity(run, 5).lines


def test_a_run_without_a_baseline_has_no_gains():
    run = make_run([row("cub", 1, "npc", 40.0)])
    assert tables.accuracies(run, 1).columns == ["method", "cub", "average"]
    assert not tables.gains(run, 1).lines


@pytest.mark.parametrize("wanted", [True, False])
def test_other_systems_are_shown_as_published_where_the_run_wants_them(wanted):
    lines = tables.accuracies(make_run(systems=wanted), 1).lines
    first = published.content()["systems"][0]
    assert (first["dataset"], first["shot"]) == ("cub", 1)
    found = [line for line in lines if line.head == first["title"]]
    assert bool(found) == wanted
    for line in found:
        assert line.published
        assert line.cells[0].text == f"{first['accuracy']:.2f}"


def test_a_published_line_has_no_parameters_of_ours():
    rows = [row("cub", 1, "npc_l2", 40.0)]
    rows.append(row("cub", 1, "finetune(steps=9)", 41.0, title="Fine-tuning (steps=9)"))
    lines = tables.accuracies(make_run(rows), 1).lines
    assert [line.head for line in lines if line.published][-1] == "Fine-tuning"


def test_settings_have_the_names_of_the_command_line():
    shown = page.settings(make_run())
    assert shown["config.pretrain.init_from"] == "…/weights.tar"
    assert shown["config.rdc.k"] == "10"
    assert shown["config.rdc.centre"] == "yes"


def test_origins_have_fingerprints_and_versions():
    found = page.origins(make_run())
    assert found["its fingerprint"] == "c0ffee" * 8
    assert found["its training"] == "on glyphs, 84 px"
    assert found["fingerprint of my photos"] == "d2" * 16
    assert found["jax"] == "1.2.3"
