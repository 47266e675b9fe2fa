"""Runs that vary a parameter: found by the methods' names, drawn as curves."""

from xml.etree import ElementTree

import pytest
from reporting.made import make_run, row

from rdc_jax.evaluation import published
from rdc_jax.methods import find_variant
from rdc_jax.reporting import page, plots, summary, sweeps, tables, variants
from rdc_jax.reporting import published as shown

LAMBDAS = (0.9, 0.1, 0.5)


def sweep_run(*names, **kwargs):
    names = names or [f"rdc_original(lam={value})" for value in LAMBDAS]
    rows = [row("cub", 1, "npc_l2", 40.0)]
    rows += [
        row("cub", 1, name, 41.0 + i, (1.0 + i, 0.5), title=find_variant(name).title)
        for i, name in enumerate(names)
    ]
    return make_run(rows, **kwargs)


def label(drawing):
    return ElementTree.fromstring(drawing.svg).get("aria-label")


def test_names_are_taken_apart_as_they_are_put_together():
    name = "rdc_ft(batch_norm=running;learning_rate=1e-4)"
    base, fields = variants.parse(name)
    assert base == "rdc_ft"
    assert find_variant(name).title.endswith(
        f"({', '.join(f'{k}={v}' for k, v in fields.items())})"
    )
    assert variants.parse("rdc") == ("rdc", {})


def test_a_number_that_varies_is_a_sweep_in_its_order():
    ((series,),) = variants.sweeps(sweep_run()).values()
    assert series.title == "RDC w/o subspace"
    assert list(series.names) == [0.1, 0.5, 0.9]
    assert series.names[0.9] == "rdc_original(lam=0.9)"


def test_readings_are_series_of_their_own():
    names = [
        f"rdc(dim={dim}{reading})"
        for reading in ("", ";centre=False")
        for dim in (16, 64, 256)
    ]
    found = variants.sweeps(sweep_run(*names, "rdc(k=6)", "rdc(k=4)"))
    assert list(found) == ["dim"]  # two values of k make no curve
    assert [series.title for series in found["dim"]] == ["RDC", "RDC, centre=False"]


def test_words_are_no_sweep():
    names = [f"rdc(subspace={kind})" for kind in ("linear", "gaussian", "tanh")]
    assert variants.sweeps(sweep_run(*names)) == {}


def test_the_main_variant_is_the_one_of_the_config():
    assert summary.mains(sweep_run()) == ["rdc_original(lam=0.5)"]


def test_curves_tell_our_means_and_the_paper_s():
    run = sweep_run()
    ((field, series),) = variants.sweeps(run).items()
    found = sweeps.panel(run, 1, field, series, "s")
    assert "RDC w/o subspace: 0.1: 42.0%, 0.5: 43.0%, 0.9: 41.0%." in label(found)
    assert "dotted line is NPC + l2 norm" in found.caption
    assert [key.text for key in found.legend] == [
        "RDC w/o subspace",
        "dashed: RDC w/o subspace (paper, 224 px, its own data sets)",
    ]


def test_the_paper_has_no_curve_of_other_parameters():
    run = sweep_run("rdc(k2=2)", "rdc(k2=4)", "rdc(k2=8)")
    ((field, series),) = variants.sweeps(run).items()
    assert len(sweeps.panel(run, 1, field, series, "s").legend) == 1


def test_many_methods_have_a_line_each():
    names = [f"rdc(k={k};lam={lam})" for k in (4, 6, 8) for lam in (0.1, 0.5, 0.9)]
    run = sweep_run(*names)
    found = plots.ladder(run, 1, "l")
    texts = [e.text for e in ElementTree.fromstring(found.svg).iter() if e.text]
    assert all(find_variant(name).title in texts for name in names)
    assert "RDC (k=4, lam=0.1) +1.0 ± 0.5" in label(found)
    text = page.render([run])
    assert "the same tasks: NPC + l2 norm and RDC (9 settings)." in text
    assert "Parameters" in text
    assert "run1-accuracy-1-" not in text  # no figure with ten marks in a row
    assert "averaged over the data sets, with 95% intervals" in text


@pytest.mark.parametrize("wanted", [True, False])
def test_other_systems_are_shown_as_published_where_the_run_wants_them(wanted):
    run = sweep_run(systems=wanted)
    heads = [line.head for line in tables.accuracies(run, 1).lines if line.published]
    known = {row["title"] for row in published.content()["systems"]}
    assert bool(known & set(heads)) == wanted
    if wanted:
        first = published.content()["systems"][0]
        (line,) = [
            line
            for line in tables.accuracies(run, 1).lines
            if line.head == first["title"]
        ]
        assert (first["dataset"], first["shot"]) == ("cub", 1)
        assert line.cells[0].text == f"{first['accuracy']:.2f}"


def test_a_published_line_has_no_parameters_of_ours():
    run = sweep_run("finetune(steps=100)")
    heads = [line.head for line in tables.accuracies(run, 1).lines if line.published]
    assert "Fine-tuning" in heads and "Fine-tuning (steps=100)" not in heads
    assert any("as others reported" in note for note in shown.notes(run))
