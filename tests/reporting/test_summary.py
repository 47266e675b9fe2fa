"""What the cards say follows from the numbers."""

import pytest
from reporting import made
from reporting.made import make_run, pair, row

from rdc_jax.reporting import runs, summary


@pytest.mark.parametrize(
    ("gain", "ci95", "expected"),
    [
        (0.5, 0.4, "helps"),
        (-0.5, 0.4, "hurts"),
        (0.4, 0.4, "unclear"),
        (0.0, 0.0, "unclear"),
        (5.0, None, "unclear"),  # one task has no interval
    ],
)
def test_only_a_whole_interval_on_one_side_decides(gain, ci95, expected):
    assert runs.verdict(gain, ci95) == expected


def test_a_card_has_the_gain_and_on_how_many_data_sets_it_is_clear():
    rows = [
        *pair("cub", 1, (3.0, 0.3), base=40.0),
        *pair("cars", 1, (1.0, 0.4), base=30.0),
        *pair("isic", 1, (-1.0, 0.5), base=30.0),
        *pair("chestx", 1, (0.1, 0.5), base=20.0),
    ]
    (((card),),) = summary.cards(make_run(rows))
    assert (card.method, card.shot, card.verdict) == ("RDC", 1, "helps")
    assert (card.before, card.after) == (30.0, pytest.approx(30.775))
    assert card.gain == pytest.approx(0.775)
    assert card.counts == {"helps": 2, "unclear": 1, "hurts": 1}
    # What is on none is not mentioned.
    (((card),),) = summary.cards(make_run(pair("a", 5, (-2.0, 0.5))))
    assert card.counts == {"hurts": 1}


def test_without_a_baseline_nothing_is_claimed():
    run = make_run([row("cub", 1, "rdc", 50.0)])
    assert summary.cards(run) == []


def test_the_main_methods_are_the_full_ones_without_and_with_fine_tuning():
    names = ("npc", "rdc_one_space", "rdc", "rdc(k=6)", "rdc_ft", "rdc_ft(steps=2)")
    rows = [row("a", 1, "npc_l2", 50.0)]
    rows += [row("a", 1, name, 51.0, (1.0, 0.5)) for name in names]
    run = make_run(rows)
    assert summary.main_methods(run) == ["rdc", "rdc_ft"]
    assert [cards[0].method for cards in summary.cards(run)] == ["RDC", "RDC-FT"]


def test_among_other_authors_methods_the_main_one_is_of_rdc():
    names = ("bd_cspn", "rdc", "rdc_plus", "rdc_plus(k=6)", "tim", "proto_lp")
    rows = [row("a", 1, "npc_l2", 50.0)]
    rows += [row("a", 1, name, 51.0, (1.0, 0.5)) for name in names]
    assert summary.main_methods(make_run(rows)) == ["rdc_plus"]


def test_methods_that_look_at_one_query_at_a_time_can_be_the_main_one():
    rows = [row("a", 1, "npc_l2", 50.0), row("a", 1, "mine", 51.0, (1.0, 0.5))]
    assert summary.main_methods(make_run(rows)) == ["mine"]


def test_made_results_have_the_shape_of_real_ones():
    run = make_run()
    assert run.shots == [1, 5] and run.datasets == ["cub", "my photos"]
    assert run.baseline == "npc_l2" and run.titles["rdc"] == made.TITLES["rdc"]
