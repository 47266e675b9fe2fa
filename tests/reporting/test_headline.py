"""The answer of the report follows from the numbers."""

import pytest
from reporting import made
from reporting.made import make_run, pair, row

from rdc_jax.evaluation import published
from rdc_jax.reporting import headline, runs


def test_the_interval_of_an_average_is_that_of_independent_means():
    rows = [*pair("a", 1, (1.0, 0.3)), *pair("b", 1, (2.0, 0.4))]
    mean, ci95 = runs.average_gain([r for r in rows if "gain" in r])
    assert mean == 1.5
    # A 3-4-5 triangle, halved.
    assert ci95 == pytest.approx(0.25, rel=0.01)


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


def test_every_shot_is_answered():
    assert headline.answers(make_run()) == [
        "Did RDC help? Yes in 1-shot tasks, by 1.6 points on average; no in 5-shot "
        "tasks, where it loses 1.1 points on average."
    ]
    run = make_run(pair("a", 1, (0.3, 0.5)))
    assert headline.answers(run) == ["Did RDC help? Not clearly in 1-shot tasks."]


def test_a_card_has_the_gain_and_on_how_many_data_sets_it_is_clear():
    rows = [
        *pair("cub", 1, (3.0, 0.3), base=40.0),
        *pair("cars", 1, (1.0, 0.4), base=30.0),
        *pair("isic", 1, (-1.0, 0.5), base=30.0),
        *pair("chestx", 1, (0.1, 0.5), base=20.0),
    ]
    (((card),),) = headline.cards(make_run(rows))
    assert (card.method, card.shot, card.verdict) == ("RDC", 1, "helps")
    assert (card.before, card.after) == (30.0, pytest.approx(30.775))
    assert card.gain == pytest.approx(0.775)
    assert card.counts == {"helps": 2, "unclear": 1, "hurts": 1}
    # What is on none is not mentioned.
    (((card),),) = headline.cards(make_run(pair("a", 5, (-2.0, 0.5))))
    assert card.counts == {"hurts": 1}


def test_without_a_baseline_nothing_is_claimed():
    run = make_run([row("cub", 1, "rdc", 50.0)])
    assert headline.answers(run)[0].startswith("No method was compared")
    assert headline.cards(run) == []


def test_the_main_methods_are_the_full_ones_without_and_with_fine_tuning():
    names = ("npc", "rdc_one_space", "rdc", "rdc(k=6)", "rdc_ft", "rdc_ft(steps=2)")
    rows = [row("a", 1, "npc_l2", 50.0)]
    rows += [row("a", 1, name, 51.0, (1.0, 0.5)) for name in names]
    run = make_run(rows, trained=("rdc_ft", "rdc_ft(steps=2)"))
    assert headline.main_methods(run) == ["rdc", "rdc_ft"]
    assert [cards[0].method for cards in headline.cards(run)] == ["RDC", "RDC-FT"]


def test_methods_that_look_at_one_query_at_a_time_can_be_the_main_one():
    rows = [row("a", 1, "npc_l2", 50.0), row("a", 1, "mine", 51.0, (1.0, 0.5))]
    assert headline.main_methods(make_run(rows)) == ["mine"]


@pytest.mark.parametrize(("episodes", "told"), [(1, "1 task "), (12, "12 tasks ")])
def test_few_tasks_are_not_trusted(episodes, told):
    rows = [{**r, "episodes": episodes} for r in pair("a", 1, (1.0, 0.5))]
    assert told in headline.answers(make_run(rows))[1]


def test_warnings_that_differ_in_data_set_and_amount_are_one():
    run = make_run()
    loses = "rdc loses {} ± 0.50 points to npc_l2 on the same tasks"
    purity = (
        "expansion lowers the purity of neighbour sets from {}%: lower config.rdc.k"
    )
    run.results["warnings"] = [
        "k=10 is too large",
        f"cub 5-shot: {loses.format(1.0)}",
        f"my photos 5-shot: {loses.format('2.00')}",
        f"cub 1-shot: {loses.format(3.0)}",
        f"cub 1-shot: {purity.format('50% to 40')}",
        f"my photos 1-shot: {purity.format('60% to 30')}",
    ]
    assert headline.warnings(run) == [
        "k=10 is too large",
        "5-shot, cub and my photos: RDC loses to NPC + l2 norm on the same tasks",
        "1-shot, cub: RDC loses 3.0 ± 0.50 points to NPC + l2 norm on the same tasks",
        "1-shot, cub and my photos: expansion lowers the purity of neighbour sets: "
        "lower config.rdc.k",
    ]


def test_notes_say_what_published_numbers_are_of():
    assert headline.paper_notes(make_run())[0] == published.content()["note"]
    assert headline.paper_notes(make_run(way=4)) == []


def test_made_results_have_the_shape_of_real_ones():
    run = make_run()
    assert run.shots == [1, 5] and run.datasets == ["cub", "my photos"]
    assert run.baseline == "npc_l2" and run.titles["rdc"] == made.TITLES["rdc"]
