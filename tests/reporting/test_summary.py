"""What the report says in words follows from the numbers."""

import pytest
from reporting import made
from reporting.made import make_run, pair, row

from rdc_jax.evaluation import published, statistics
from rdc_jax.reporting import gains, summary


def test_the_interval_of_an_average_is_that_of_independent_means():
    rows = [*pair("a", 1, (1.0, 0.3)), *pair("b", 1, (2.0, 0.4))]
    found = gains.average([r for r in rows if "gain" in r])
    assert found.mean == 1.5
    # A 3-4-5 triangle, halved.
    assert found.ci95 == pytest.approx(0.25, rel=0.01)
    assert found.verdict == "helps"


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
    assert gains.verdict(gain, ci95) == expected


def test_a_gain_is_told_with_its_interval_and_where_it_holds():
    run = make_run(
        [
            *pair("cub", 1, (3.0, 0.3), base=40.0),
            *pair("cars", 1, (1.0, 0.4), base=30.0),
            *pair("isic", 1, (-1.0, 0.5), base=30.0),
            *pair("chestx", 1, (0.1, 0.5), base=20.0),
        ]
    )
    each = [(3.0, 0.3), (1.0, 0.4), (-1.0, 0.5), (0.1, 0.5)]
    ci95 = statistics.average(each, [made.EPISODES] * 4).ci95
    assert summary.sentences(run, 1) == [
        f"RDC gains +0.78 ± {ci95:.2f} points over NPC + l2 norm on average over 4 "
        "data sets in 1-shot (30.0% to 30.8%). It helps on cub and cars, and hurts on "
        "isic; on chestx the difference is within chance."
    ]


def test_a_loss_is_told_as_a_loss():
    run = make_run([*pair("a", 5, (-2.0, 0.5)), *pair("b", 5, (-1.0, 0.5))])
    (text,) = summary.sentences(run, 5)
    assert text.startswith("RDC loses 1.50 ± 0.35 points to NPC + l2 norm on average")
    assert "helps clearly on none, and hurts on a and b." in text
    assert summary.answers(run) == [
        "Did RDC help? No in 5-shot tasks, where it loses 1.5 points on average."
    ]


def test_chance_is_told_as_chance():
    run = make_run(pair("a", 1, (0.3, 0.5)))
    assert summary.sentences(run, 1) == [
        "RDC makes no clear difference to NPC + l2 norm: +0.30 ± 0.50 points on a in "
        "1-shot (50.0% to 50.3%)."
    ]
    assert summary.answers(run) == ["Did RDC help? Not clearly in 1-shot tasks."]


def test_every_shot_is_answered():
    assert summary.answers(make_run()) == [
        "Did RDC help? Yes in 1-shot tasks, by 1.6 points on average; no in 5-shot "
        "tasks, where it loses 1.1 points on average."
    ]


def test_without_a_baseline_nothing_is_claimed():
    run = make_run([row("cub", 1, "rdc", 50.0)])
    assert summary.answers(run)[0].startswith("No method was compared")
    assert summary.sentences(run, 1) == summary.remarks(run) == []


def test_the_main_methods_are_the_full_ones_without_and_with_fine_tuning():
    names = ("npc", "rdc_original", "rdc", "rdc(k=6)", "rdc_ft", "rdc_ft(steps=2)")
    rows = [row("a", 1, "npc_l2", 50.0)]
    rows += [row("a", 1, name, 51.0, (1.0, 0.5)) for name in names]
    run = make_run(rows, trained=("rdc_ft", "rdc_ft(steps=2)"))
    assert summary.mains(run) == ["rdc", "rdc_ft"]
    assert list(summary.headlines(run)) == ["rdc", "rdc_ft"]
    # These first, then others, but not all of them.
    told = [text.split(" gains")[0] for text in summary.sentences(run, 1)]
    assert told == ["RDC", "RDC-FT", "rdc_ft(steps=2)"]


def test_methods_that_look_at_one_query_at_a_time_can_be_the_main_one():
    rows = [row("a", 1, "npc_l2", 50.0), row("a", 1, "mine", 51.0, (1.0, 0.5))]
    assert summary.mains(make_run(rows)) == ["mine"]


def test_few_tasks_are_not_trusted():
    rows = [{**r, "episodes": 12} for r in pair("a", 1, (1.0, 0.5))]
    assert summary.answers(make_run(rows)) == [
        "Did RDC help? Yes in 1-shot tasks, by 1.0 points on average.",
        "Only 12 tasks a data set: too few to conclude from.",
    ]


def test_the_paper_s_gain_is_of_the_data_sets_in_common():
    (text,) = [t for t in summary.remarks(make_run()) if "1-shot" in t]
    paper = {
        r["method"]: r["accuracy"]
        for r in published.content()["rows"]
        if (r["dataset"], r["shot"]) == ("cub", 1)
    }
    theirs = f"{paper['rdc'] - paper['npc_l2']:+.2f}"
    assert "on the 1 data set" in text
    assert f"+3.00 points here, {theirs} in the paper" in text
    assert not [t for t in summary.remarks(make_run(way=4)) if "paper" in t]


def test_the_setting_says_what_was_run():
    text = summary.setting(make_run())
    assert "100 tasks from each of 2 data sets (cub and my photos)" in text
    assert "5 classes have 1 or 5 labelled images each" in text
    assert "15 more images a class; guessing would be right in 20%" in text
    assert "NPC + l2 norm and RDC" in text
    assert "84 pixels" in text and "resnet10" in text
    one = summary.setting(make_run(pair("cub", 1, (1.0, 0.5)), dirichlet=2.0))
    assert one.startswith("100 tasks from cub.")
    assert "1 labelled image each" in one and "a class on average" in one


def test_tasks_that_differ_in_number_are_told_as_a_range():
    rows = pair("a", 1, (1.0, 0.5))
    rows[1]["episodes"] = 2000
    assert summary.setting(make_run(rows)).startswith("100 to 2,000 tasks")


def test_made_results_have_the_shape_of_real_ones():
    run = make_run()
    assert run.shots == [1, 5] and run.datasets == ["cub", "my photos"]
    assert run.baseline == "npc_l2" and run.titles["rdc"] == made.TITLES["rdc"]
