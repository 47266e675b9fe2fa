"""Figures: what they show, what they say, and that they fit into a page."""

import re
from xml.etree import ElementTree

import pytest
from reporting.made import make_run, pair, row

from rdc_jax.reporting import drawing, figures


@pytest.fixture(scope="module")
def run():
    return make_run()


@pytest.fixture(scope="module")
def drawings(run):
    makes = (figures.accuracy, figures.gains, figures.purity)
    return [one for make in makes for one in make(run, 1)]


def ids(svg):
    return re.findall(r' id="([^"]+)"', svg)


def label(drawn):
    return ElementTree.fromstring(drawn.svg).get("aria-label")


def test_figures_are_whole_svg_with_a_title_a_role_and_a_text(drawings):
    assert len(drawings) == 3
    for drawn in drawings:
        root = ElementTree.fromstring(drawn.svg)
        assert root.tag == "svg" and root.get("role") == "img"
        assert "my photos" in root.get("aria-label")
        assert "1-shot" in drawn.title and label(drawn).startswith(drawn.title)


def test_figures_can_share_a_page(run, drawings):
    every = [*drawings, *figures.accuracy(run, 5), *figures.gains(run, 5)]
    found = [one for drawn in every for one in ids(drawn.svg)]
    assert len(found) == len(set(found)) > 0
    for drawn in every:
        used = re.findall(r'(?:href="|url\()#([^")]+)', drawn.svg)
        assert set(used) == set(ids(drawn.svg))
        assert "<style" not in drawn.svg  # it would hold for the whole page
        assert "http" not in drawn.svg


def test_colours_are_variables_that_exist_in_both_schemes(drawings):
    for drawn in drawings:
        variables = set(re.findall(r"var\((--[\w-]+)\)", drawn.svg)) - {"--font"}
        assert variables
        for scheme in (0, 1):
            assert all(f"{name}: #" in drawing.css(scheme) for name in variables)
        # None is left that a dark page could not change.
        assert not re.findall(r"(?:fill|stroke): #", drawn.svg)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_series_and_texts_stand_out_from_the_background(scheme):
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", drawing.css(scheme)))
    ground = luminance(colours.pop("background"))
    del colours["grid"]
    for name, colour in colours.items():
        low, high = sorted((ground, luminance(colour)))
        least = 3.0 if name.startswith("series") else 4.5
        assert (high + 0.05) / (low + 0.05) >= least, name


def test_series_differ_by_more_than_colour():
    marks = [drawing.mark(place) for place in range(40)]
    assert len({(mark.colour, mark.marker) for mark in marks}) == 40
    assert len({mark.marker for mark in marks[:5]}) == 5


def test_the_same_numbers_give_the_same_figure(run, drawings):
    assert figures.gains(run, 1) == [drawings[1]]


def test_names_may_hold_anything():
    names = ("$x^$ & <b>", '"quoted" _under')
    run = make_run([r for name in names for r in pair(name, 1, (1.0, 0.5))])
    (drawn,) = figures.gains(run, 1)
    text = "".join(ElementTree.fromstring(drawn.svg).itertext())
    assert all(name in text for name in names)


def test_figures_tell_every_number_and_the_average_gain(drawings):
    accuracy, gains, purity = map(label, drawings)
    assert "RDC: cub 43.0 ± 1.0, my photos 50.2 ± 1.0" in accuracy
    assert "RDC: cub +3.00 ± 0.5, my photos +0.20 ± 0.4, average +1.60 ± 0.3" in gains
    assert "before expansion: cub 50.0, my photos 50.0. after expansion: cub" in purity


def test_shots_have_one_scale(run):
    ticks = []
    for shot in run.shots:
        (drawn,) = figures.gains(run, shot)
        texts = [e for e in ElementTree.fromstring(drawn.svg).iter("text")]
        ticks.append([(e.text, e.get("transform")) for e in texts if e.text.isdigit()])
    assert ticks[0] == ticks[1] != []


def test_hollow_marks_are_explained_only_where_there_are_some(drawings):
    assert drawings[0].legend[-1][-1] == "hollow: paper, 224 px"
    (drawn,) = figures.accuracy(make_run(way=4), 1)
    assert [text for _, _, text in drawn.legend] == ["NPC + l2 norm", "RDC"]


def test_curves_have_a_panel_for_each_data_set():
    points = [
        {"dataset": name, "shot": shot, "method": "rdc_ft", "step": step}
        | {"accuracy": 40.0 + step, "ci95": 1.0}
        for shot in (1, 5)
        for name in ("a", "b")
        for step in (0, 5, 20)
    ]
    rows = [row(n, s, "rdc_ft", 60.0) for s in (1, 5) for n in ("a", "b")]
    found = figures.steps(make_run(rows, curves=points), 5)
    assert [drawn.title for drawn in found] == ["a, 5-shot", "b, 5-shot"]
    assert "RDC-FT: 0 40.0 ± 1.0, 5 45.0 ± 1.0, 20 60.0 ± 1.0" in label(found[0])


def test_what_is_not_there_is_not_drawn():
    run = make_run([row("cub", 1, "npc", 40.0)])
    run.results["neighbours"] = []
    del run.results["curves"]  # as written by earlier versions
    makes = (figures.gains, figures.purity, figures.steps, figures.sweeps)
    assert [make(run, 1) for make in makes] == [[], [], [], []]


def test_a_query_set_without_neighbours_has_no_purity(run):
    run = make_run()
    run.results["neighbours"][0]["purity_after"] = None
    (drawn,) = figures.purity(run, 1)
    assert "after expansion: my photos 45.5" in label(drawn)


def test_a_figure_s_text_is_escaped():
    with drawing.canvas(1.0, 1.0) as (figure, _):
        svg = drawing.export(figure, 'a "b" <c>')
    assert ElementTree.fromstring(svg).get("aria-label") == 'a "b" <c>'
