"""Example tasks on a plane."""

import re

import numpy as np
import pytest
from reporting.made import make_results, make_run, make_task, row, write_run, write_task

from rdc_jax.reporting import example_tasks, runs
from rdc_jax.runtime.errors import UserError


@pytest.fixture(scope="module")
def task():
    return make_task(make_results())


def drawn(*tasks):
    return example_tasks.draw(make_run(), [[task] for task in tasks])


def read(workdir):
    return example_tasks.read(runs.read(workdir), workdir)


def test_a_plane_keeps_neighbours_together(task):
    place_n2 = example_tasks.place(task.features)
    assert np.isfinite(place_n2).all()
    np.testing.assert_array_equal(place_n2, example_tasks.place(task.features))
    twins = np.concatenate([task.features, task.features + 1e-4])
    twin_n2 = example_tasks.place(twins)
    n = len(task.features)
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


def test_features_after_training_have_a_row_of_their_own(task):
    trained = task._replace(trained_by="RDC-FT")
    (found,) = example_tasks.draw(make_run(), [[task, trained]])
    assert found.title.endswith("right, RDC 6; after RDC-FT, NPC + l2 norm 5")
    assert list(found.rows)[1] == "Features after RDC-FT on this task"


def test_the_task_of_median_gain_is_unfolded(task):
    loses = task._replace(npc=task.rdc, rdc=task.npc)
    draws = task._replace(npc=task.rdc)
    assert [one.open for one in drawn(task, loses, draws)] == [False, False, True]
    assert [one.open for one in drawn(task, loses)] == [False, True]  # the lower one
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
    assert [(task.dataset, task.shot) for (task,) in found] == [
        ("cub", 1),
        ("cub", 5),
        ("my photos", 1),
        ("my photos", 5),
    ]


def test_training_comes_after_the_network_as_it_was(tmp_path, task):
    rows = [row("cub", 1, "rdc", 50.0), row("cub", 1, "rdc_ft", 51.0)]
    results = make_results(rows)
    trained = task._replace(trained_by="RDC-FT")
    (found,) = read(write_run(tmp_path, results, trained, task))
    assert [one.trained_by for one in found] == ["", "RDC-FT"]


@pytest.mark.parametrize("content", [b"", b"torn", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "cub-1.npz"
    path.write_bytes(content)
    message = r"cub-1\.npz is damaged or no example task: delete it"
    with pytest.raises(UserError, match=message):
        example_tasks.read_task(path)


def test_damage_inside_is_told(tmp_path, task):
    path = tmp_path / "cub-1.npz"
    write_task(path, task)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :: 7] = b"x" * len(content[len(content) // 2 :: 7])
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged or no example task"):
        example_tasks.read_task(path)


def test_pictures_can_share_a_page(task):
    (found,) = drawn(task)
    (panels,) = found.rows.values()
    ids = [one for panel in panels for one in re.findall(r' id="([^"]+)', panel.svg)]
    assert len(ids) == len(set(ids)) > 0
