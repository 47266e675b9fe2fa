"""What is wrong with a run is said in one line a fault."""

import pytest

from rdc_jax.configs import eval as eval_config
from rdc_jax.evaluation import warnings
from rdc_jax.evaluation.options import Options

TITLES = {"npc_l2": "NPC + l2 norm", "rdc": "RDC"}


def collect(*, k=4, rows=(), neighbours=(), curves=()):
    config = eval_config.get_config("test")
    config.update(checkpoint="x", methods="npc_l2,rdc", query=5, rdc={"k": k})
    options = Options.from_config(config.to_dict())
    parts = {"rows": rows, "neighbours": neighbours, "curves": curves}
    return warnings.collect(options, 1, **parts)


def sets(dataset="cub", before=80.0, after=78.0, jaccard_one=60.0):
    return {"dataset": dataset, "purity_before": before, "purity_after": after} | {
        "jaccard_one": jaccard_one
    }


def gain(dataset, mean, ci95=0.3, *, method="rdc", transductive=True):
    row = {"dataset": dataset, "method": method, "title": TITLES[method]}
    row |= {"transductive": transductive}
    return row | ({} if mean is None else {"gain": mean, "gain_ci95": ci95})


def test_a_sound_run_has_none():
    base = gain("cub", None, method="npc_l2", transductive=False)
    assert collect(rows=[base, gain("cub", 1.0)], neighbours=[sets()]) == []


def test_a_k_beyond_the_class_is_told():
    (warning,) = collect(k=10)
    assert warning.startswith("1-shot: k=10") and "only 5 others" in warning
    assert not collect(k=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"after": 60.0}, "lowers the purity of neighbour sets of cub (80% to 60%)"),
        ({"jaccard_one": 97.0}, "share no neighbour in tasks of cub (97%)"),
        ({"before": None, "after": None}, "no query of cub has a neighbour"),
    ],
)
def test_bad_neighbour_sets_are_told(change, message):
    (warning,) = collect(neighbours=[sets("isic"), sets(**change)])
    assert warning.startswith("1-shot: ") and message in warning


def test_one_fault_of_many_data_sets_is_one_line():
    faults = [sets("cub", after=60.0), sets("isic", after=50.0)]
    (warning,) = collect(neighbours=faults)
    assert "of cub (80% to 60%), isic (80% to 50%):" in warning


def test_only_losses_of_transductive_methods_beyond_chance_are_told():
    rows = [
        gain("isic", None, method="npc_l2", transductive=False),
        gain("isic", -4.0, transductive=False),
        gain("cub", 0.5),
        gain("cars", -0.2),
        gain("chestx", -9.0, None),  # One task.
        gain("isic", -0.5),
        gain("eurosat", -2.0),
    ]
    assert collect(rows=rows) == [
        "1-shot: RDC loses to NPC + l2 norm on the same tasks of isic (0.50 ± 0.30 "
        "points), eurosat (2.00 ± 0.30 points): do not use it there"
    ]


def test_fine_tuning_that_was_better_before_its_last_step_is_told():
    def curve(dataset, *ahead):
        return [
            {"dataset": dataset, "title": "RDC-FT", "step": step}
            | {"accuracy": 50.0 + points, "ahead": points, "ahead_ci95": 0.5}
            for step, points in zip((0, 5, 20), ahead, strict=True)
        ]

    curves = [*curve("cub", -3.0, 2.0, 0.0), *curve("isic", -3.0, 0.4, 0.0)]
    (warning,) = collect(curves=curves)
    assert (
        "RDC-FT was better before its last step on cub (2.00 ± 0.50 points" in warning
    )
    assert "after step 5" in warning and "isic" not in warning
