"""Runs that vary a parameter: found by the methods' names, drawn as curves."""

from xml.etree import ElementTree

from reporting.made import make_run, row, write_run

from rdc_jax.evaluation.options import Entry
from rdc_jax.methods import get_method
from rdc_jax.reporting import figures, report, variants

LAMBDAS = (0.9, 0.1, 0.5)


def title(name):
    return Entry(name, get_method(name)).title


def sweep_run(*names, **kwargs):
    names = names or [f"rdc_one_space(lam={value})" for value in LAMBDAS]
    rows = [row("cub", 1, "npc_l2", 40.0)]
    rows += [
        row("cub", 1, name, 41.0 + i, (1.0 + i, 0.5), title=title(name))
        for i, name in enumerate(names)
    ]
    return make_run(rows, **kwargs)


def test_names_are_taken_apart_as_they_are_put_together():
    name = "rdc_ft(batch_norm=running;learning_rate=1e-4)"
    base, fields = variants.parse(name)
    assert base == "rdc_ft"
    assert title(name).endswith(f"({', '.join(f'{k}={v}' for k, v in fields.items())})")
    assert variants.parse("rdc") == ("rdc", {})


def test_a_number_that_varies_is_a_sweep_in_its_order():
    ((title, names),) = variants.sweeps(sweep_run())["lam"]
    assert title == "RDC w/o subspace"
    assert list(names) == [0.1, 0.5, 0.9]
    assert names[0.9] == "rdc_one_space(lam=0.9)"


def test_readings_are_series_of_their_own():
    names = [
        f"rdc(dim={dim}{reading})"
        for reading in ("", ";centre=False")
        for dim in (16, 64, 256)
    ]
    found = variants.sweeps(sweep_run(*names, "rdc(k=6)", "rdc(k=4)"))
    assert list(found) == ["dim"]  # two values of k make no curve
    assert [title for title, _ in found["dim"]] == ["RDC", "RDC, centre=False"]


def test_words_are_no_sweep():
    names = [f"rdc(subspace={kind})" for kind in ("linear", "gaussian", "tanh")]
    assert variants.sweeps(sweep_run(*names)) == {}


def test_curves_tell_our_means_and_the_paper_s():
    (found,) = figures.sweeps(sweep_run(), 1)
    label = ElementTree.fromstring(found.svg).get("aria-label")
    assert "RDC w/o subspace: 0.1 42.0, 0.5 43.0, 0.9 41.0" in label
    assert found.title == "Accuracy by lam, 1-shot"
    assert "dotted line is NPC + l2 norm" in found.note
    assert [text for _, _, text in found.legend] == [
        "RDC w/o subspace",
        "dashed: RDC w/o subspace (paper, 224 px, its own data sets)",
    ]


def test_the_paper_has_no_curve_of_other_parameters():
    (found,) = figures.sweeps(sweep_run("rdc(k2=2)", "rdc(k2=4)", "rdc(k2=8)"), 1)
    assert len(found.legend) == 1


def test_of_many_methods_there_are_curves_and_tables_alone(tmp_path):
    names = [f"rdc(k={k};lam={lam})" for k in (4, 6, 8) for lam in (0.1, 0.5, 0.9)]
    run = sweep_run(*names)
    assert figures.accuracy(run, 1) == figures.gains(run, 1) == []
    text = report.write(write_run(tmp_path, run.results)).read_text()
    assert "Parameters" in text
    assert all(title(name) in text for name in names)
