"""Parameters chosen on other classes."""

import json

import pytest
from evaluation import worlds

from rdc_jax.evaluation.choice import alternatives
from rdc_jax.evaluation.run import evaluate
from rdc_jax.runtime.errors import UserError


def test_alternatives_are_all_combinations():
    text = "rdc(k=4|6;lam=0.3|0.5;k2=3)@other"
    assert alternatives(text) == (
        "rdc(k=4;lam=0.3;k2=3)@other",
        "rdc(k=4;lam=0.5;k2=3)@other",
        "rdc(k=6;lam=0.3;k2=3)@other",
        "rdc(k=6;lam=0.5;k2=3)@other",
    )
    assert alternatives("npc_l2") == ("npc_l2",)


@pytest.fixture
def choosing(config, tmp_path):
    """A config that chooses on a folder of other classes."""
    worlds.write_images(tmp_path, name="held", classes=6, per_class=8)
    config.update(
        choose_on=f"{tmp_path / 'held'}:test",
        methods="npc_l2,label_propagation(k=2|4)",
        episodes=4,
    )
    return config.to_dict()


def test_the_best_alternative_takes_the_place_of_all(choosing, tmp_path):
    results = evaluate(choosing, tmp_path / "run")
    held = json.loads((tmp_path / "run/choice/results.json").read_text())
    means = {
        method: sum(
            row["accuracy"] for row in held["averages"] if row["method"] == method
        )
        / 2
        for method in ("label_propagation(k=2)", "label_propagation(k=4)")
    }
    best = max(means, key=means.__getitem__)
    assert [row["method"] for row in results["rows"]] == ["npc_l2", best] * 2
    assert {row["dataset"] for row in held["rows"]} == {"held"}
    record = {
        "dataset": str(tmp_path / "held"),
        "split": "test",
        "tasks": 4,
        "methods": [
            {
                "asked": "label_propagation(k=2|4)",
                "chosen": best,
                "accuracies": pytest.approx(means),
            }
        ],
    }
    assert results["choice"] == record
    line = (tmp_path / "run/ledger.jsonl").read_text().splitlines()[0]
    assert json.loads(line.partition(" ")[2])["choice"] == record
    assert f"- `{best}` of" in (tmp_path / "run/table.md").read_text()
    # A method may be added, with a choice of its own; the first stays.
    more = choosing | {
        "methods": choosing["methods"] + ",npc_prepared(prepare=l2|power+l2)"
    }
    again = evaluate(more, tmp_path / "run")
    assert len(again["choice"]["methods"]) == 2
    assert again["rows"][:2] == results["rows"][:2]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"choose_on": ""}, "--config.choose_on=miniimagenet:val"),
        ({"choose_on": "photos"}, "give a data set and a split"),
        ({"choose_on": "photos:test"}, "choose on classes that are not tested"),
        ({"methods": "npc_l2"}, "no method has alternatives"),
        ({"methods": "rdc(k=2|many)"}, "k=many"),
        ({"checkpoint": ""}, "needs config.checkpoint"),
        ({"datasets": "nowhere"}, "unknown data set 'nowhere'"),
    ],
)
def test_what_cannot_be_is_told_before_any_work(choosing, tmp_path, fields, message):
    with pytest.raises(UserError, match=message):
        evaluate(choosing | fields, tmp_path / "run")
    assert not (tmp_path / "run/choice").exists()
