"""Images of other classes among the queries: which, where, and of what they depend."""

import numpy as np
import pytest

from rdc_jax.data.distractor_queries import NO_CLASS, DistractorQueries
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.runtime.errors import UserError

LABELS = np.repeat(np.arange(8), [30, 30, 30, 30, 30, 30, 30, 2])
SPEC = TaskSpec(way=5, shot=2, query=4)
TASKS, COUNT, S = 200, 12, SPEC.support_size


def make(numbers=range(TASKS), *, count=COUNT, seed=0, labels=LABELS):
    numbers = np.array(numbers)
    tasks = TaskSampler(LABELS, SPEC, seed=0, dataset="cub")(numbers)
    others = DistractorQueries(labels, count, way=5, seed=seed, dataset="cub")
    return tasks, others(tasks, numbers, supports=S)


@pytest.fixture(scope="module")
def made():
    return make()


def test_the_task_itself_stays_as_it_was(made):
    tasks, more = made
    np.testing.assert_array_equal(more.classes, tasks.classes)
    np.testing.assert_array_equal(more.indices[:, :S], tasks.indices[:, :S])
    own = more.labels != NO_CLASS
    for name in ("indices", "labels"):
        kept = getattr(more, name)[own].reshape(tasks.indices.shape)
        np.testing.assert_array_equal(kept, getattr(tasks, name))


def test_they_are_of_other_classes_and_no_image_comes_twice(made):
    _, more = made
    for indices, labels, classes in zip(*more, strict=True):
        others = indices[labels == NO_CLASS]
        assert len(set(others)) == COUNT
        assert not np.isin(LABELS[others], classes).any()


def test_they_stand_anywhere_among_the_queries(made):
    _, more = made
    queries = more.labels[:, S:] == NO_CLASS
    share = queries.mean(axis=0)
    assert abs(share - COUNT / queries.shape[1]).max() < 0.15
    # Each other image is as likely as the next, of a small class too.
    drawn = np.bincount(LABELS[more.indices[more.labels == NO_CLASS]], minlength=8)
    rate = drawn / np.bincount(LABELS)
    # Of the seven others, two in seven are out of a task.
    assert rate[7] == pytest.approx(rate[:7].mean() * 7 / 2, rel=0.2)


def test_a_task_depends_on_its_number_and_the_seed_alone(made):
    _, more = made
    _, few = make([7, 3])
    np.testing.assert_array_equal(few.indices, more.indices[[7, 3]])
    _, other = make(range(3), seed=1)
    assert (other.indices != more.indices[:3]).any()


def test_images_may_be_kept_out():
    labels = np.where(np.arange(len(LABELS)) % 2, LABELS, -1)
    _, more = make(range(20), labels=labels, count=5)
    assert (more.indices[more.labels == NO_CLASS] % 2 == 1).all()


def test_none_is_the_task_as_it_is():
    tasks, more = make(range(3), count=0)
    np.testing.assert_array_equal(more.indices, tasks.indices)
    np.testing.assert_array_equal(more.labels, tasks.labels)


def test_too_few_images_are_told():
    make(range(1), count=62)
    with pytest.raises(UserError, match=r"distractor_queries=63.*as few as 62 images"):
        make(range(1), count=63)
