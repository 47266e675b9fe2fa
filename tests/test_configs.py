"""Every config of the paper's tables and figures can be read."""

import importlib
import pathlib

import pytest
from reporting.made import make_results, row

from rdc_jax import methods
from rdc_jax.configs import study_rdc_ft, study_rdc_plus, transductive
from rdc_jax.evaluation import published, table
from rdc_jax.evaluation.options import Options
from rdc_jax.runtime.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "rdc_jax/configs/paper"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def read(name, variant):
    module = importlib.import_module(f"rdc_jax.configs.paper.{name}")
    config = module.get_config(variant)
    config.checkpoint = "x"
    return Options.from_config(config.to_dict())


@pytest.mark.parametrize("variant", ["paper", "reduced"])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_variation_of_the_evaluation(name, variant):
    options = read(name, variant)
    if name != "figure4":  # Pictures of one task.
        assert options.episodes == {"paper": 2000, "reduced": 1000}[variant]
    assert options.image_size == {"paper": 224, "reduced": 84}[variant]
    assert options.baseline in {method.name for method in options.methods}


def test_table_2_takes_systems_of_our_own_beside_the_published_ones():
    module = importlib.import_module("rdc_jax.configs.paper.table2")
    config = module.get_config("reduced,gnn_ft,protonet_ata")
    config.checkpoint = "x"
    with pytest.raises(UserError, match=r"give it as in --config.checkpoints.gnn_ft="):
        Options.from_config(config.to_dict())
    config.checkpoints = "gnn_ft=a,protonet_ata=b"
    *_, first, second = Options.from_config(config.to_dict()).methods
    assert (first.name, first.title) == ("gnn@gnn_ft", "GNN (gnn_ft)")
    assert second.title == "ProtoNet (protonet_ata)"
    with pytest.raises(ValueError, match="no system 'gnn_fit': choose from protonet"):
        module.get_config("reduced,gnn_fit")


@pytest.mark.parametrize("variant", ["reduced", "paper", "test"])
def test_all_transductive_methods_on_features_are_compared(variant):
    config = transductive.get_config(variant)
    config.checkpoint = "x"
    options = Options.from_config(config.to_dict())
    compared = {entry.method.name for entry in options.methods}
    known = map(methods.get_method, methods.names())
    missing = {
        method.name
        for method in known
        if method.inputs == "features" and method.transductive and not method.head
    } - compared
    assert missing <= {"npc_subspace"}  # Its part is in rdc.


def test_numbers_are_chosen_on_other_tasks_than_those_reported():
    chosen = study_rdc_plus.get_config()
    Options.from_config({**chosen.to_dict(), "checkpoint": "x"})
    assert chosen.seed != transductive.get_config().seed
    assert chosen.datasets == transductive.get_config().datasets


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_has_it(name):
    page = (ROOT / "docs/paper.md").read_text()
    assert f"configs/paper/{name}.py" in page


@pytest.mark.parametrize(
    ("name", "shot", "count"),
    [("table1", 1, 3), ("sweep_lambda", 5, 6), ("sweep_alpha", 1, 7), ("table5", 5, 3)],
)
def test_methods_meet_the_published_numbers_by_name(name, shot, count):
    methods = {method.name for method in read(name, "paper").methods}
    rows = published.content()["rows"]
    named = {row["method"] for row in rows if row["shot"] == shot}
    assert len(methods & named) == count
    # What else there is are other readings of a row.
    assert {method.partition("(")[0] for method in methods - named} <= {"da", "lmm_pqs"}


def made_table(name):
    """The table of a run of all eight domains, with made-up numbers."""
    options = read(name, "paper")
    rows = [
        row(dataset, shot, method.name, 50.0, title=method.title)
        for shot in options.shots
        for dataset in options.datasets
        for method in options.methods
    ]
    return table.markdown(make_results(rows, systems=options.systems))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_of_all_domains_has_the_paper_s_lines(name):
    methods = read(name, "paper").methods
    named = {row["method"] for row in published.content()["rows"]}
    named |= {row["method"] for row in published.content()["averages"]}
    titles = {row["title"] for row in published.content()["systems"]}
    text = made_table(name)
    for method in methods:
        title = published.title_of(method.name, method.title)
        count = text.count(f"| *{title} (paper, 224 px)*")
        known = published.name_of(method.name) in named or title in titles
        assert count == known * len(read(name, "paper").shots)


def test_the_baseline_of_table_2_stands_beside_what_the_paper_reports_of_it():
    (ours,) = [m for m in read("table2", "paper").methods if "finetune(" in m.name]
    text = made_table("table2")
    assert text.count("| *Fine-tuning (paper, 224 px)*") == 2
    assert "optimiser=sgd, learning_rate=0.01, steps=100" in ours.title


def test_tables_that_are_averages_alone_have_them():
    cells = [t.split("|") for t in made_table("table4").splitlines() if "|" in t]
    found = {c[1].strip(): c[-2].strip() for c in cells if "(paper" in c[1]}
    assert found["*RDC (subspace=tanh) (paper, 224 px)*"] == "*59.83*"


def test_other_systems_have_their_averages():
    (line,) = [t for t in made_table("table2").splitlines() if "NSAE" in t]
    assert line.split("|")[2].strip() == "*68.51 ± 0.80*"
    assert line.split("|")[-2].strip() == "*64.03*"


def test_readings_of_rdc_ft_train_the_last_block_and_its_own_numbers_stand():
    config = study_rdc_ft.get_config()
    config.checkpoint = "x"
    options = Options.from_config(config.to_dict())
    tuned = {
        entry.name: entry.method.finetune
        for entry in options.methods
        if hasattr(entry.method, "finetune")
    }
    assert len(tuned) == 2 + len(study_rdc_ft.READINGS) + len(study_rdc_ft.CHOICES)
    assert tuned["rdc_ft"].layers == tuned["rdc_plus_ft"].layers == ("block4",)
    assert (tuned["rdc_ft"].steps, tuned["rdc_plus_ft"].steps) == (10, 8)
