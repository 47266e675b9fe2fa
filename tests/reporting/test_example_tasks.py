"""Example tasks on a plane."""

import re

import numpy as np
import pytest
from reporting.made import make_results, make_run, make_task, write_run

from rdc_jax.reporting import example_tasks, runs
from rdc_jax.runtime.errors import UserError


@pytest.fixture(scope="module")
def task():
    return make_task(make_results())


def drawn(*tasks):
    return example_tasks.draw(make_run(), list(tasks))


def read(workdir):
    return example_tasks.read(runs.read(workdir), workdir)


def test_a_plane_keeps_neighbours_together(task):
    place_n2 = example_tasks.place(task.before.features)
    assert np.isfinite(place_n2).all()
    np.testing.assert_array_equal(place_n2, example_tasks.place(task.before.features))
    twins = np.concatenate([task.before.features, task.before.features + 1e-4])
    twin_n2 = example_tasks.place(twins)
    n = len(task.labels)
    gap = np.linalg.norm(twin_n2[:n] - twin_n2[n:], axis=1)
    spread = np.linalg.norm(twin_n2 - twin_n2.mean(axis=0), axis=1).mean()
    assert gap.mean() < spread / 4


def test_tasks_are_shown_with_both_methods_answers(task):
    (found,) = drawn(task)
    assert found.title == "cub, 1-shot: NPC + l2 norm has 5 of 6 right, RDC 6"
    (panels,) = found.rows.values()
    assert [panel.title for panel in panels] == [
        "True classes",
        "NPC + l2 norm: 5 of 6 right",
        "RDC: 6 of 6 right",
    ]
    rings = [panel.svg.count("stroke: var(--hurts)") for panel in panels]
    assert rings[0] == rings[2] == 0 < rings[1]
    assert [text for _, _, text in found.legend][:3] == ["owl", "wren", "jay"]


def test_fine_tuned_features_have_a_row_of_their_own(task):
    both = task._replace(after=task.before, after_title="RDC-FT")
    (found,) = drawn(both)
    assert found.title.endswith("right, RDC 6; after RDC-FT, NPC + l2 norm 5")
    assert list(found.rows)[1] == "Features after RDC-FT on this task"


def test_the_task_of_median_gain_is_unfolded(task):
    answers = task.before
    loses = answers._replace(npc=answers.rdc, rdc=answers.npc)
    draws = answers._replace(npc=answers.rdc)
    tasks = [task._replace(before=b) for b in (answers, loses, draws)]
    assert [one.open for one in drawn(*tasks)] == [False, False, True]
    assert [one.open for one in drawn(*tasks[:2])] == [False, True]  # the lower one
    assert drawn() == []


def test_tasks_of_another_run_are_not_shown(tmp_path):
    other = make_task(make_results(seed=8))
    workdir = write_run(tmp_path, make_results(), other)
    assert read(workdir) == []


def test_tasks_are_in_the_order_of_the_tables(tmp_path):
    results = make_results()
    places = [("my photos", 5), ("cub", 5), ("my photos", 1), ("cub", 1)]
    made = [make_task(results, dataset=d, shot=s) for d, s in places]
    found = read(write_run(tmp_path, results, *made))
    assert [(task.dataset, task.shot) for task in found] == [
        ("cub", 1),
        ("cub", 5),
        ("my photos", 1),
        ("my photos", 5),
    ]


def test_a_damaged_file_is_named(tmp_path):
    workdir = write_run(tmp_path, make_results())
    folder = workdir / example_tasks.FOLDER
    folder.mkdir()
    (folder / "cub-1.npz").write_bytes(b"torn")
    with pytest.raises(UserError, match=r"cub-1\.npz is damaged"):
        read(workdir)


def test_pictures_can_share_a_page(task):
    (found,) = drawn(task)
    (panels,) = found.rows.values()
    ids = [one for panel in panels for one in re.findall(r' id="([^"]+)', panel.svg)]
    assert len(ids) == len(set(ids)) > 0
