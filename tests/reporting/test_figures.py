"""Figures: what they show, what they say, and that they fit into a page."""

import base64
import dataclasses
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from reporting.made import make_exhibit, make_results, make_run, pair, row

from rdc_jax.reporting import (
    curves,
    drawing,
    embedding,
    palette,
    plots,
    rankings,
    shares,
)


@pytest.fixture(scope="module")
def run():
    return make_run()


@pytest.fixture(scope="module")
def exhibit():
    return make_exhibit(make_results())


@pytest.fixture(scope="module")
def figures(run):
    return [
        plots.accuracy(run, 1, "a"),
        plots.forest(run, 1, "b"),
        shares.outcomes(run, 1, "rdc", "c"),
        shares.purity(run, 1, "d"),
    ]


def ids(svg):
    return re.findall(r' id="([^"]+)"', svg)


def test_figures_are_whole_svg_with_a_role_and_a_text(figures):
    for figure in figures:
        root = ElementTree.fromstring(figure.svg)
        assert root.tag == "svg" and root.get("role") == "img"
        assert "my photos" in root.get("aria-label")
        assert figure.caption.endswith(".")


def test_figures_can_share_a_page(figures):
    svgs = [figure.svg for figure in figures]
    found = [one for svg in svgs for one in ids(svg)]
    assert len(found) == len(set(found)) > 0
    for svg in svgs:
        used = re.findall(r'(?:href="|url\()#([^")]+)', svg)
        assert set(used) == set(ids(svg))
        assert "<style" not in svg  # it would hold for the whole page
        assert "http" not in svg


def test_colours_are_variables_that_exist_in_both_schemes(figures):
    for figure in figures:
        variables = set(re.findall(r"var\((--[\w-]+)\)", figure.svg)) - {"--font"}
        assert variables
        for scheme in (0, 1):
            assert all(f"{name}: #" in palette.css(scheme) for name in variables)
        # None is left that a dark page could not change.
        assert not re.findall(r"(?:fill|stroke): #", figure.svg)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_series_and_texts_stand_out_from_the_background(scheme):
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", palette.css(scheme)))
    ground = luminance(colours.pop("background"))
    del colours["grid"]
    for name, colour in colours.items():
        low, high = sorted((ground, luminance(colour)))
        least = 3.0 if name.startswith("series") else 4.5
        assert (high + 0.05) / (low + 0.05) >= least, name


def test_series_differ_by_more_than_colour():
    marks = [palette.mark(place) for place in range(40)]
    assert len({(mark.colour, mark.marker) for mark in marks}) == 40
    assert len({mark.marker for mark in marks[:5]}) == 5


def test_the_same_numbers_give_the_same_figure(run, figures):
    assert plots.forest(run, 1, "b") == figures[1]


def test_names_may_hold_anything():
    names = ("$x^$ & <b>", '"quoted" _under')
    run = make_run([r for name in names for r in pair(name, 1, (1.0, 0.5))])
    svg = plots.forest(run, 1, "f").svg
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert all(name in text for name in names)


def test_the_forest_tells_every_gain_and_their_average(figures):
    label = ElementTree.fromstring(figures[1].svg).get("aria-label")
    assert "cub +3.0 ± 0.5, my photos +0.2 ± 0.4, average +1.6 ± 0.3" in label


def test_hollow_marks_are_explained_only_where_there_are_some(figures):
    assert figures[0].legend[-1].text == "hollow: paper, 224 px"
    assert len(plots.accuracy(make_run(way=4), 1, "a").legend) == 2


def test_curves_have_a_panel_for_each_data_set_and_shot():
    points = [
        {"dataset": name, "shot": shot, "method": "rdc_ft", "step": step}
        | {"accuracy": 40.0 + step, "ci95": 1.0}
        for shot in (1, 5)
        for name in ("a", "b")
        for step in (0, 5, 20)
    ]
    rows = [row(n, s, "rdc_ft", 60.0) for s in (1, 5) for n in ("a", "b")]
    found = curves.panels(make_run(rows, curves=points), 5, "s")
    assert [figure.caption for figure in found] == ["a, 5-shot.", "b, 5-shot."]
    label = ElementTree.fromstring(found[0].svg).get("aria-label")
    assert "RDC-FT: 40.0% at step 0, 60.0% at step 20." in label
    assert curves.panels(make_run(rows), 5, "s") == []


def test_a_plane_keeps_neighbours_together(exhibit):
    place_n2 = embedding.place(exhibit.before.features)
    assert np.isfinite(place_n2).all()
    np.testing.assert_array_equal(place_n2, embedding.place(exhibit.before.features))
    twins = np.concatenate([exhibit.before.features, exhibit.before.features + 1e-4])
    twin_n2 = embedding.place(twins)
    n = len(exhibit.labels)
    gap = np.linalg.norm(twin_n2[:n] - twin_n2[n:], axis=1)
    spread = np.linalg.norm(twin_n2 - twin_n2.mean(axis=0), axis=1).mean()
    assert gap.mean() < spread / 4


def test_tasks_are_shown_with_both_methods_answers(exhibit):
    found = embedding.panels(exhibit, "t")
    assert found.title == "cub, 1-shot: NPC + l2 norm has 5 of 6 right, RDC 6"
    (panels,) = found.rows.values()
    assert [panel.caption for panel in panels] == [
        "True classes.",
        "NPC + l2 norm: 5 of 6 right.",
        "RDC: 6 of 6 right.",
    ]
    rings = [panel.svg.count("stroke: var(--hurts)") for panel in panels]
    assert rings[0] == rings[2] == 0 < rings[1]
    assert [key.text for key in found.legend][:3] == ["owl", "wren", "jay"]


def test_fine_tuned_features_have_a_row_of_their_own(exhibit):
    both = dataclasses.replace(exhibit, after=exhibit.before, after_title="RDC-FT")
    found = embedding.panels(both, "t")
    assert found.title.endswith("right, RDC 6; after RDC-FT, NPC + l2 norm 5")
    assert list(found.rows)[1] == "Features after RDC-FT on this task"
    every = [
        one for panels in found.rows.values() for p in panels for one in ids(p.svg)
    ]
    assert len(every) == len(set(every))


def test_lists_are_in_the_order_of_the_distances(exhibit):
    (query,) = rankings.rankings(exhibit)
    assert query.kind == "typical"  # squares are in the order of what is squared
    row_of = next(
        i
        for i in range(exhibit.support_size, len(exhibit.labels))
        if rankings.data_uri(exhibit.images[i]) == query.image
    )
    nearest = sorted(
        (i for i in range(len(exhibit.labels)) if i != row_of),
        key=lambda i: exhibit.before.original[row_of, i],
    )
    assert [item.image for item in query.before] == [
        rankings.data_uri(exhibit.images[i]) for i in nearest
    ]
    own = exhibit.labels[row_of]
    assert [item.right for item in query.before] == [
        exhibit.labels[i] == own for i in nearest
    ]
    assert [item.labelled for item in query.before] == [i < 3 for i in nearest]
    assert query.class_name == exhibit.class_names[own]
    first = next(p for p, i in enumerate(nearest, 1) if i < 3 and own == i)
    assert query.first[0] == first


def test_the_queries_shown_are_the_most_and_the_least_improved(monkeypatch, exhibit):
    monkeypatch.setattr(rankings, "LENGTH", 1)
    n, s = len(exhibit.labels), exhibit.support_size
    same = exhibit.labels[:, None] == exhibit.labels
    good, bad = np.where(same, 1.0, 2.0), np.where(same, 2.0, 1.0)
    original, calibrated = np.ones((n, n)), np.ones((n, n))
    original[s:], calibrated[s:] = good[s:], good[s:]
    original[s + 4], calibrated[s + 4] = bad[s + 4], good[s + 4]  # improves
    calibrated[s + 1] = bad[s + 1]  # gets worse
    before = dataclasses.replace(
        exhibit.before,
        original=original.astype(np.float32),
        calibrated=calibrated.astype(np.float32),
    )
    found = rankings.rankings(dataclasses.replace(exhibit, before=before))
    kinds = {ranking.kind: ranking for ranking in found}
    assert list(kinds) == ["most improved", "typical", "most harmed"]
    assert kinds["most improved"].right == (0, 1)
    assert kinds["most harmed"].right == (1, 0)
    assert kinds["typical"].right == (1, 1)
    wanted = rankings.data_uri(exhibit.images[s + 4])
    assert kinds["most improved"].image == wanted


def test_answers_are_told_with_the_lists(exhibit):
    wrong = rankings.data_uri(exhibit.images[exhibit.support_size])
    for query in rankings.rankings(exhibit):
        right = query.image != wrong
        given = query.class_name if right else "jay"
        assert query.answers["NPC + l2 norm"] == (given, right)
        assert query.answers["RDC"] == (query.class_name, True)


def test_images_are_in_the_page_itself():
    smooth = np.linspace(0, 255, 32 * 32 * 3).reshape(32, 32, 3).astype(np.uint8)
    kind, _, text = rankings.data_uri(smooth).partition(",")
    assert kind == "data:image/jpeg;base64"
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))), float)
    assert np.abs(image - smooth).mean() < 4


def test_a_figure_s_text_is_escaped():
    with drawing.canvas(1.0, 1.0) as (figure, _):
        svg = drawing.export(figure, "x", 'a "b" <c>')
    assert ElementTree.fromstring(svg).get("aria-label") == 'a "b" <c>'
