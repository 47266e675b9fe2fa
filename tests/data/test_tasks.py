"""Tasks: what they contain, and that only their number decides it."""

import dataclasses
import hashlib
import logging
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.runtime.errors import UserError

_LABELS = np.repeat(np.arange(12), [20, 31, 25, 40, 20, 22, 60, 20, 21, 33, 20, 45])
_MANY = 5000  # tasks, where their distribution is looked at


def _sample(numbers, labels=_LABELS, *, seed=0, dataset="cub", **spec):
    spec = TaskSpec(**{"way": 5, "shot": 2, "query": 6, **spec})
    return TaskSampler(labels, spec, seed=seed, dataset=dataset)(numbers)


@st.composite
def _problems(draw):
    """Shuffled labels of unequal classes, and a spec that they can serve."""
    spec = TaskSpec(
        way=draw(st.integers(1, 4)),
        shot=draw(st.integers(1, 3)),
        query=draw(st.integers(1, 5)),
        dirichlet=draw(st.none() | st.floats(0.01, 100)),
    )
    enough = st.integers(spec.shot + spec.query, 20)
    sizes = draw(st.lists(enough, min_size=spec.way, max_size=7))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return rng.permutation(labels), spec


@settings(deadline=None)
@given(_problems(), st.integers(0, 2**64))
def test_a_task_is_well_formed(problem, seed):
    labels, spec = problem
    tasks = TaskSampler(labels, spec, seed=seed, dataset="x")(range(20))
    s, n = spec.support_size, spec.support_size + spec.query_size
    assert tasks.indices.shape == tasks.labels.shape == (20, n)
    assert tasks.classes.shape == (20, spec.way)
    for indices, task_labels, classes in zip(*tasks, strict=True):
        assert len(set(indices.tolist())) == n
        assert len(set(classes.tolist())) == spec.way
        np.testing.assert_array_equal(labels[indices], classes[task_labels])
        support = np.repeat(np.arange(spec.way), spec.shot)
        np.testing.assert_array_equal(task_labels[:s], support)
        if spec.dirichlet is None:
            counts = np.bincount(task_labels[s:], minlength=spec.way)
            assert set(counts.tolist()) == {spec.query}


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 199), max_size=30),
    st.sampled_from([None, 2.0]),
    st.sampled_from([1, 5]),
)
def test_a_task_is_the_same_in_any_company(numbers, dirichlet, shot):
    whole = _sample(range(200), dirichlet=dirichlet, shot=shot)
    some = _sample(np.array(numbers, np.int64), dirichlet=dirichlet, shot=shot)
    for part, full in zip(some, whole, strict=True):
        np.testing.assert_array_equal(part, full[numbers])


def test_chunks_join_up():
    whole = _sample(range(100))
    chunks = [_sample(range(i, min(i + 7, 100))) for i in range(0, 100, 7)]
    for full, parts in zip(whole, zip(*chunks, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), full)


def test_whole_numbers_are_the_same_concentration():
    whole, fraction = _sample(range(5), dirichlet=2), _sample(range(5), dirichlet=2.0)
    np.testing.assert_array_equal(whole.indices, fraction.indices)


def test_huge_numbers_work():
    far = _sample(range(10**15, 10**15 + 2))
    assert (far.indices[0] != far.indices[1]).any()


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"dataset": "cars"}, {"query": 7}, {"shot": 3}, {"dirichlet": 2.0}],
)
def test_another_setting_is_another_set_of_tasks(change):
    ours, theirs = _sample(range(200)), _sample(range(200), **change)
    same_classes = (ours.classes == theirs.classes).all(axis=1).mean()
    assert same_classes < 0.05


def test_tasks_never_change_between_versions():
    """Published results name a seed; the tasks behind it must stay what they were."""
    tasks = _sample(np.array([0, 1999]), query=1, shot=1, way=3)
    assert tasks.indices.tolist() == [
        [142, 311, 16, 4, 301, 148],
        [263, 7, 172, 283, 3, 192],
    ]
    tasks = _sample(np.array([7]), query=3, shot=1, way=2, dirichlet=1.0)
    assert tasks.indices.tolist() == [[39, 117, 129, 38, 123, 121, 29, 50]]


@pytest.mark.parametrize(
    ("spec", "digest"),
    [
        (TaskSpec(), "211e8421fc33a7f0"),
        (TaskSpec(shot=5), "2a17be4269674c01"),
        (TaskSpec(way=7, shot=3, query=9), "3ef9b3326d27d0e6"),
        (TaskSpec(way=3, shot=2, query=4, dirichlet=2), "029f33dd48c0f81b"),
        (TaskSpec(dirichlet=0.5), "a5ac8d0a5dc9ea54"),
    ],
)
def test_many_tasks_never_change_between_versions(spec, digest):
    labels = np.repeat(np.arange(12), np.arange(20, 44, 2))
    labels = np.random.default_rng(0).permutation(labels)
    numbers = np.r_[0:300, 5000:5010, 17]
    tasks = TaskSampler(labels, spec, seed=0, dataset="cub")(numbers)
    content = b"".join(part.tobytes() for part in tasks)
    assert hashlib.sha256(content).hexdigest()[:16] == digest


def test_classes_and_images_are_drawn_uniformly():
    sizes = np.arange(16, 26)
    labels = np.repeat(np.arange(10), sizes)
    tasks = _sample(range(_MANY), labels)
    class_counts = np.bincount(tasks.classes.ravel(), minlength=10)
    # Five of ten classes a task, without replacement: variance n * p * (1 - p).
    z = (class_counts - _MANY / 2) / np.sqrt(_MANY * 0.5 * 0.5)
    assert np.abs(z).max() < 4
    support_counts = np.bincount(tasks.indices[:, :10].ravel(), minlength=len(labels))
    share = 0.5 * 2 / sizes[labels]
    z = (support_counts - _MANY * share) / np.sqrt(_MANY * share * (1 - share))
    assert np.abs(z).max() < 4.5
    assert 0.8 < z.std() < 1.2


def test_a_querys_place_says_nothing_about_its_label():
    labels_eq = _sample(range(_MANY)).labels[:, 10:]
    for label in range(5):
        share_q = (labels_eq == label).mean(axis=0)
        assert np.abs(share_q - 0.2).max() < 4.5 * np.sqrt(0.2 * 0.8 / _MANY)


def test_dirichlet_proportions_have_the_right_spread():
    labels = np.repeat(np.arange(5), 500)
    for alpha in (0.5, 2.0, 10.0):
        tasks = _sample(range(1500), labels, query=20, dirichlet=alpha)
        one_hot = tasks.labels[:, 10:, None] == np.arange(5)
        share_ec = one_hot.mean(axis=1)
        assert np.abs(share_ec.mean(axis=0) - 0.2).max() < 0.02
        expected = np.sqrt(0.2 * 0.8 / (5 * alpha + 1))
        assert share_ec.std() == pytest.approx(expected, rel=0.07)


def test_uneven_queries_take_no_more_than_a_class_has():
    sizes = np.array([8, 9, 30, 200])
    labels = np.repeat(np.arange(4), sizes)
    tasks = _sample(range(500), labels, way=4, dirichlet=0.05)
    images = np.stack([np.bincount(labels[row], minlength=4) for row in tasks.indices])
    assert (images <= sizes).all()
    assert (images.max(axis=0) == [8, 9, 26, 26]).all()  # all four reach their limit


@pytest.mark.parametrize("dirichlet", [None, 2.0])
def test_a_thousand_tasks_take_less_than_half_a_second(dirichlet):
    labels = np.random.default_rng(0).integers(0, 100, 60_000)
    spec = TaskSpec(shot=5, dirichlet=dirichlet)
    sampler = TaskSampler(labels, spec, seed=0, dataset="big")
    seconds = []
    for _ in range(3):  # other programs may be at work
        start = time.process_time()
        assert len(sampler(range(1000)).indices) == 1000
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.5


def test_small_classes_are_left_out_and_named(caplog):
    labels = np.repeat(np.arange(5), [20, 3, 20, 7, 20])
    names = ("ant", "bee", "cat", "dog", "eel", "fox")
    with caplog.at_level(logging.WARNING):
        sampler = TaskSampler(
            labels,
            TaskSpec(way=3, shot=2, query=6),
            seed=0,
            dataset="zoo",
            class_names=names,
        )
    assert set(np.unique(sampler(range(50)).classes)) == {0, 2, 4}
    assert caplog.messages == [
        "zoo: classes with fewer than 8 images are left out of the tasks: bee, dog, fox"
    ]


def test_enough_images_everywhere_is_silent(caplog):
    _sample(range(1))
    assert not caplog.messages


def test_fewer_classes_than_ways_is_an_error_that_says_so():
    with pytest.raises(UserError, match=r"cub has 2 classes .* fewer than way=5"):
        _sample(range(1), np.repeat(np.arange(4), [8, 8, 7, 7]))


@pytest.mark.parametrize("field", ["way", "shot", "query", "dirichlet"])
def test_impossible_specs_are_refused(field):
    with pytest.raises(UserError, match=f"{field}=0"):
        dataclasses.replace(TaskSpec(), **{field: 0})


def test_negative_tasks_are_refused():
    with pytest.raises(UserError, match="task -1"):
        _sample(np.array([0, -1]))


def test_no_tasks_are_no_rows():
    assert _sample(range(0)).indices.shape == (0, 40)
