"""What a report says of classes."""

import re

import pytest
from reporting.made import CLASSES, make_run, pair, row

from rdc_jax.reporting import classes


@pytest.fixture(scope="module")
def content():
    return classes.content(make_run())


def test_macro_f1_has_a_line_a_method(content):
    table = content["tables"][0]
    assert table.caption == "Macro-F1 in percent ± 95% interval, 1-shot"
    assert table.columns == ["method", "cub", "my photos"]
    assert [line.head for line in table.lines] == ["NPC + l2 norm", "RDC"]
    assert [cell.text for cell in table.lines[1].cells] == ["41.00", "48.20"]
    assert table.lines[0].cells[0].small == "± 1.50"


def test_balanced_accuracy_is_told_where_classes_are_uneven(content):
    assert len(content["tables"]) == 2
    tables = classes.content(make_run(dirichlet=2.0))["tables"]
    assert [table.caption.split()[0] for table in tables] == [
        "Macro-F1",
        "Balanced",
    ] * 2
    assert tables[1].lines[0].cells[0].text == "39.00"


def test_each_data_set_shows_the_main_method(content):
    assert len(content["shown"]) == 4
    first = content["shown"][0]
    assert first.title == (
        "cub, 1-shot: RDC names 90% of owl rightly, 60% of a class of a very long name"
    )
    pairs, accuracies = first.tables
    assert [cell.text for cell in pairs.lines[0].cells] == ["wren", "41.2", "1,200"]
    assert accuracies.columns == ["class", "NPC + l2 norm", "RDC"]
    assert [line.head for line in accuracies.lines] == [*CLASSES[:4]]
    assert accuracies.lines[1].cells[0].text == "80.0"


def test_a_matrix_has_a_square_for_each_share(content):
    svg = content["shown"][0].matrix.svg
    assert svg.count("M") == 16  # Four classes that were asked for.
    assert "owl 55%" in svg and "a class of a ver…" in svg
    shades = [float(shade) for shade in re.findall(r'fill-opacity="([^"]+)"', svg)]
    assert shades == sorted(set(shades)) and 0 < shades[0] < shades[-1] <= 1


def test_classes_of_a_large_matrix_are_numbered():
    run = make_run(pair("cub", 1, (1.0, 0.5)))
    names = [f"bird {c}" for c in range(20)]
    run.results["class_names"]["cub"] = names
    for each in run.results["classes"]:
        each["confusion"] = [[1] * 20] * 20
        each["class_accuracy"] = [5.0] * 20
    (shown,) = classes.content(run)["shown"]
    assert re.findall(r">(\d+)</text>", shown.matrix.svg) == ["5", "10", "15", "20"]
    assert "Numbers are those of the table" in shown.matrix.note
    assert shown.tables[1].lines[4].note == "5"


def test_results_without_classes_show_nothing():
    made = row("cub", 1, "npc", 40.0)
    run = make_run([{k: v for k, v in made.items() if "macro" not in k}])
    del run.results["classes"]
    assert classes.content(run) == {}
