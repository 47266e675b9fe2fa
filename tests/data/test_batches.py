"""Training batches are a function of the seed and the step."""

import dataclasses
import time

import numpy as np
import pytest
from data.fakes import fake_pixels
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc_jax.data.batches import domain_batches, task_batches, training_batches
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.runtime.errors import UserError

_PIXELS = fake_pixels(50)
_SPEC = TaskSpec(way=3, shot=2, query=4)


def _training(**options):
    return training_batches(_PIXELS, **{"batch_size": 8, "seed": 0, **options})


def _tasks(**options):
    return task_batches(_PIXELS, _SPEC, **{"seed": 0, **options})


def _take(batches, count):
    return [next(batches) for _ in range(count)]


def _indices(batches):
    return np.concatenate([batch["index"] for batch in batches])


def _assert_same(ours, theirs):
    assert ours
    for a, b in zip(ours, theirs, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_a_batch_is_images_with_their_labels():
    for batch in _take(_training(), 10):
        rows = batch["index"]
        assert batch["image"].shape == (8, 8, 8, 3)
        assert (batch["image"] == rows[:, None, None, None]).all()
        np.testing.assert_array_equal(batch["label"], _PIXELS.labels[rows])
        np.testing.assert_array_equal(batch["aspect"], _PIXELS.aspects[rows])
        dtypes = {name: str(array.dtype) for name, array in batch.items()}
        assert dtypes == {
            "image": "uint8",
            "label": "int32",
            "index": "int64",
            "aspect": "float32",
        }


def test_an_epoch_has_no_image_twice_and_drops_the_remainder():
    batches = _training()
    epochs = [_indices(_take(batches, 6)) for _ in range(20)]
    for epoch in epochs:
        assert len(np.unique(epoch)) == 48
    assert len(np.unique(np.concatenate(epochs))) == 50  # others are dropped each time
    assert len({tuple(epoch) for epoch in epochs}) == 20


def test_the_seed_decides_the_order():
    _assert_same(_take(_training(), 14), _take(_training(), 14))
    # Not even as another epoch: neighbouring seeds must not be shifted copies.
    epochs = [
        {tuple(_indices(_take(batches, 6))) for _ in range(5)}
        for batches in (_training(seed=0), _training(seed=1))
    ]
    assert not epochs[0] & epochs[1]


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 15))
@pytest.mark.parametrize("make", [_training, _tasks])
def test_starting_anywhere_equals_never_stopping(make, start):
    _assert_same(_take(make(start=start), 5), _take(make(), start + 5)[start:])


@pytest.mark.parametrize("count", [2, 4])
def test_shards_side_by_side_are_the_whole_batch(count):
    whole = _take(_training(), 14)
    shards = [
        _take(_training(shard_index=i, shard_count=count), 14) for i in range(count)
    ]
    joined = [
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for parts in zip(*shards, strict=True)
    ]
    _assert_same(joined, whole)


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(UserError, match="batch_size=51 is more than the 50 images"):
        _training(batch_size=51)


def test_a_batch_that_does_not_divide_is_refused():
    with pytest.raises(UserError, match="multiple of 3"):
        _training(shard_count=3)


def test_task_batches_are_the_tasks_of_the_sampler():
    sampler = TaskSampler(_PIXELS.labels, _SPEC, seed=0, dataset="fake train")
    expected = sampler(range(8))
    for number, batch in enumerate(_take(_tasks(), 8)):
        np.testing.assert_array_equal(batch["index"], expected.indices[number])
        np.testing.assert_array_equal(batch["label"], expected.labels[number])
        assert (batch["image"][:, 0, 0, 0] == batch["index"]).all()


def test_reading_is_no_bottleneck():
    batches = training_batches(fake_pixels(2000, size=84), batch_size=64, seed=0)
    next(batches)
    start = time.process_time()
    _take(batches, 40)
    assert 40 * 64 / (time.process_time() - start) > 5000


def _domains(count=3, *, start=0, redraw=1):
    """Batches of domains that differ in the width of their pictures."""
    pixels = [
        dataclasses.replace(
            _PIXELS, name=f"d{i}", aspects=np.full(len(_PIXELS), i, np.float32)
        )
        for i in range(count)
    ]
    options = {"images": 4, "redraw": redraw, "seed": 0, "start": start}
    return domain_batches(pixels, _SPEC, **options)


def _pairs(batches):
    """The domains of the two tasks of each batch."""
    first, second = 4, 4 + _SPEC.support_size + _SPEC.query_size
    pairs = []
    for batch in batches:
        aspects = batch["aspect"]
        assert (aspects[:first] == 0).all()
        pair = [set(part.tolist()) for part in np.split(aspects, [first, second])[1:]]
        assert [len(part) for part in pair] == [1, 1]
        pairs.append(tuple(part.pop() for part in pair))
    return pairs


def test_domains_give_images_and_tasks_of_two_that_differ():
    pairs = _pairs(_take(_domains(), 60))
    assert set(pairs) == {(a, b) for a in range(3) for b in range(3) if a != b}


def test_domains_stay_until_they_are_drawn_anew():
    pairs = _pairs(_take(_domains(redraw=5), 40))
    blocks = [pairs[i : i + 5] for i in range(0, 40, 5)]
    assert all(len(set(block)) == 1 for block in blocks)
    assert len({block[0] for block in blocks}) > 2
    later = _pairs(_take(_domains(redraw=5, start=17), 23))
    assert later == pairs[17:]


def test_a_domain_that_is_taken_twice_gives_two_tasks():
    batches = domain_batches(
        (_PIXELS, _PIXELS), _SPEC, images=4, redraw=1, seed=0, start=0
    )
    for batch in _take(batches, 5):
        one, other = np.split(batch["index"][4:], 2)
        assert set(one.tolist()) != set(other.tolist())
        np.testing.assert_array_equal(
            batch["label"][:4], _PIXELS.labels[batch["index"][:4]]
        )
