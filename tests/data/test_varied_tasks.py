"""Tasks of random sizes, uneven supports, and supports and queries of two data sets."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc_jax.data import tasks as tasks_module
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import FILLER, TaskSampler
from rdc_jax.runtime.errors import UserError

SIZES = np.array([20, 31, 25, 40, 20, 22, 60, 20, 21, 33, 20, 45])
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(12), SIZES))
SPECS = [
    TaskSpec(way=(2, 6), shot=(1, 5), query=(3, 8)),
    TaskSpec(way=5, shot=(1, 10), query=5),
    TaskSpec(way=(5, 50), shot="any", query=10),
    TaskSpec(way=(3, 8), shot="any", query=(2, 10), max_support=20),
    TaskSpec(way=(2, 6), shot=2, query=6, dirichlet=2),
]


def sample(spec, numbers=range(200), *, seed=0, labels=LABELS, **kwargs):
    sampler = TaskSampler(labels, spec, seed=seed, dataset="cub", **kwargs)
    return sampler(numbers)


def counts(tasks, s, way):
    """Supports and queries of each class of each task."""
    parts = tasks.labels[:, :s], tasks.labels[:, s:]
    return [(part[:, :, None] == np.arange(way)).sum(axis=1) for part in parts]


@pytest.mark.parametrize("spec", SPECS)
def test_tasks_of_random_sizes_are_well_formed(spec):
    tasks, s = sample(spec), spec.support_size
    assert tasks.indices.shape == (200, s + spec.query_size)
    support_ec, query_ec = counts(tasks, s, spec.most_ways)
    there_ec = tasks.classes >= 0
    np.testing.assert_array_equal(support_ec > 0, there_ec)
    assert (query_ec[~there_ec] == 0).all()
    ways = there_ec.sum(axis=1)
    np.testing.assert_array_equal(there_ec, np.arange(spec.most_ways) < ways[:, None])
    for indices, labels, classes, mask in zip(*tasks, tasks.mask, strict=True):
        assert len(set(indices[mask])) == mask.sum()  # No image twice.
        assert (indices[~mask] == 0).all() and (labels[~mask] == FILLER).all()
        np.testing.assert_array_equal(LABELS[indices[mask]], classes[labels[mask]])
        for part in (mask[:s], mask[s:]):  # What is filled up comes last.
            assert (np.diff(part.astype(int)) <= 0).all()


def test_ranges_are_drawn_to_both_ends_and_evenly():
    spec = TaskSpec(way=(2, 6), shot=(1, 5), query=(3, 8))
    tasks = sample(spec, range(3000))
    support_ec, query_ec = counts(tasks, spec.support_size, 6)
    ways, there_ec = (tasks.classes >= 0).sum(axis=1), tasks.classes >= 0
    query_e = query_ec.max(axis=1)
    assert (query_ec[there_ec] == np.repeat(query_e, ways)).all()  # Even queries.
    for drawn, low, high in (
        (ways, 2, 6),
        (support_ec[there_ec], 1, 5),
        (query_e, 3, 8),
    ):
        share = np.bincount(drawn, minlength=high + 1)[low:] / len(drawn)
        assert len(share) == high - low + 1 and drawn.min() == low
        even = 1 / len(share)
        assert np.abs(share - even).max() < 4.5 * np.sqrt(even / len(drawn))


def test_a_range_of_ways_ends_at_the_classes_there_are():
    tasks = sample(TaskSpec(way=(5, 50), query=5))
    assert set((tasks.classes >= 0).sum(axis=1)) == set(range(5, 13))
    with pytest.raises(UserError, match=r"has 12 classes .* fewer than way=13-50"):
        sample(TaskSpec(way=(13, 50), query=5))


def meta_dataset(sizes_c, uniform, uniform_c, *, most_query, most_support):
    """What is published of Meta-Dataset's sampler, for one task, in plain words."""
    query = min(most_query, min(size // 2 for size in sizes_c))
    left_c = [size - query for size in sizes_c]
    total = sum(int(uniform * min(100, left)) + 1 for left in left_c)
    total = min(total, most_support)
    weight_c = [
        size * np.exp(np.log(0.5) + u * (np.log(2) - np.log(0.5)))
        for size, u in zip(sizes_c, uniform_c, strict=True)
    ]
    shots = []
    for weight, left in zip(weight_c, left_c, strict=True):
        share = int(weight / sum(weight_c) * (total - len(sizes_c)))
        shots.append(min(share + 1, left))
    return query, shots


@pytest.mark.parametrize("most_support", [500, 60])
def test_any_shots_are_those_of_meta_dataset(most_support, monkeypatch):
    spec = TaskSpec(way=(5, 9), shot="any", query=10, max_support=most_support)
    drawn = []
    compose = tasks_module.compose

    def spy(spec, ways, sizes, by_count, by_size):
        drawn.append((sizes[0], by_size))
        return compose(spec, ways, sizes, by_count, by_size)

    monkeypatch.setattr(tasks_module, "compose", spy)
    tasks = sample(spec, range(60))
    ((sizes_ec, by_size),) = drawn
    support_ec, query_ec = counts(tasks, spec.support_size, 9)
    for e, ways in enumerate((tasks.classes >= 0).sum(axis=1)):
        query, shots = meta_dataset(
            sizes_ec[e, :ways].tolist(),
            by_size[e, 2],
            by_size[e, 3 : 3 + ways],
            most_query=10,
            most_support=most_support,
        )
        assert support_ec[e, :ways].tolist() == shots
        assert query_ec[e, :ways].tolist() == [query] * ways


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 199), max_size=30), st.sampled_from(SPECS))
def test_a_task_is_the_same_in_any_company(numbers, spec):
    whole = sample(spec)
    some = sample(spec, np.array(numbers, np.int64))
    for part, full in zip(some, whole, strict=True):
        np.testing.assert_array_equal(part, full[numbers])


@pytest.mark.parametrize(
    ("spec", "digest"),
    list(
        zip(
            SPECS,
            [
                "042ef97a8e4d1f3d",
                "b1971835aaa3b63c",
                "98a617b09fb96ae1",
                "fd248c0ecdb3b21d",
                "e690c437a2f2a8db",
            ],
            strict=True,
        )
    ),
)
def test_tasks_never_change_between_versions(spec, digest):
    content = b"".join(part.tobytes() for part in sample(spec))
    assert hashlib.sha256(content).hexdigest()[:16] == digest


def test_uneven_queries_of_random_ways_have_the_right_number():
    spec = TaskSpec(way=(2, 6), shot=2, query=6, dirichlet=2)
    tasks = sample(spec)
    _, query_ec = counts(tasks, spec.support_size, 6)
    ways = (tasks.classes >= 0).sum(axis=1)
    np.testing.assert_array_equal(query_ec.sum(axis=1), 6 * ways)
    assert query_ec.std(axis=1).max() > 0


@pytest.mark.parametrize("shot", [2, (1, 3), "any"])
def test_supports_and_queries_of_two_data_sets(shot, caplog):
    """Classes 0-3 are in both; 4 has no supports, 5 too few queries."""
    labels, others = np.repeat([0, 1, 2, 3, 5], 8), np.repeat([0, 1, 2, 3, 4], 7)
    others = np.append(others, 5)
    spec = TaskSpec(way=(2, 4), shot=shot, query=4, max_support=12)
    names = ("ant", "bee", "cat", "dog", "eel", "fox")
    tasks = sample(spec, labels=labels, query_labels=others, class_names=names)
    s = spec.support_size
    support, query = tasks.indices[:, :s], tasks.indices[:, s:]
    assert (support < len(labels)).all()
    mask = tasks.mask[:, s:]
    assert (query[mask] >= len(labels)).all()
    for indices, task_labels, classes, real in zip(*tasks, tasks.mask, strict=True):
        found = np.concatenate([labels, others])[indices[real]]
        np.testing.assert_array_equal(found, classes[task_labels[real]])
    if shot != "any":
        assert set(np.unique(tasks.classes)) == {-1, 0, 1, 2, 3}
        assert caplog.messages[0].endswith("left out of the tasks: eel, fox")


def test_whole_classes_may_be_supports_where_queries_lie_apart():
    labels = np.repeat(np.arange(3), 5)
    spec = TaskSpec(way=3, shot=5, query=5)
    tasks = sample(spec, labels=labels, query_labels=labels)
    assert (np.sort(tasks.indices, axis=1) == np.arange(30)).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"way": (5, 2)}, "way=5-2: give the smaller number first"),
        ({"shot": (0, 2)}, "shot=.* at least 1"),
        ({"shot": "any", "way": 9, "max_support": 8}, "max_support=8: 9 classes need"),
    ],
)
def test_impossible_specs_are_refused(fields, message):
    with pytest.raises(UserError, match=message):
        TaskSpec(**fields)
