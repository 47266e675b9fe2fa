"""Counts do not depend on how the work is divided."""

import functools
import logging

import jax
import numpy as np
import pytest
from evaluation.worlds import PARAMS, SPEC, make_features, make_sampler

from rdc_jax import methods
from rdc_jax.evaluation.engine import Engine
from rdc_jax.evaluation.scoring import Wanted, judge_on_features
from rdc_jax.runtime.errors import UserError

TASKS = 23
EIGHT = pytest.param(8, marks=pytest.mark.devices8)
BOTH = tuple(methods.get_method(name, rdc=PARAMS) for name in ("npc_l2", "rdc"))
CHEAP = BOTH[:1]  # Compiles in no time.


@functools.cache
def world(per_class=12):
    feat_nd, labels_n = make_features(per_class=per_class)
    return feat_nd, make_sampler(labels_n)


def make_tasks(numbers, per_class=12):
    """Tasks with their rows gathered by NumPy, and their queries' labels."""
    feat_nd, sampler = world(per_class)
    tasks, s = sampler(numbers), SPEC.support_size
    support, query = (feat_nd[rows] for rows in np.split(tasks.indices, [s], axis=1))
    task = methods.Task(support, tasks.labels[:, :s], query, num_classes=SPEC.way)
    return task, tasks.labels[:, s:]


def counter(engine, used=CHEAP, **kwargs):
    def count(numbers):
        arrays = jax.device_put(make_tasks(numbers, **kwargs), engine.layout.sharded)
        static = (used, None, Wanted())
        return engine.map(judge_on_features, *arrays, static=static, shared=(None,))

    return count


def run(engine, used=CHEAP, tasks=range(TASKS), count=None, **kwargs):
    count = count or counter(engine, used, **kwargs)
    chunks = list(engine.run(count, tasks, max_batch=16, prefetch=1))
    judged = jax.tree.map(lambda *parts: np.concatenate(parts), *chunks)
    assert len(judged.counts) == len(judged.answers) == len(tasks)
    return judged.counts


@pytest.fixture(scope="module")
def whole():
    return run(Engine(), BOTH)


def plain_counts(number):
    """One task outside of any engine."""
    one = jax.tree.map(lambda x: x[0], make_tasks(np.array([number])))
    fn = functools.partial(judge_on_features, BOTH, None, Wanted(), None)
    return np.asarray(jax.jit(fn)(*one).counts)


def test_a_task_s_counts_are_those_of_its_own_images(whole):
    for number in (0, 9, TASKS - 1):
        np.testing.assert_array_equal(whole[number], plain_counts(number))


def test_methods_are_right_more_often_than_chance_but_not_always(whole):
    right_m = whole.mean(axis=0) / SPEC.query_size
    assert (right_m > 1.5 / SPEC.way).all()
    assert (right_m < 0.99).all()


@pytest.mark.parametrize("devices", [1, 2, EIGHT])
@pytest.mark.parametrize("chunk", [1, 7, TASKS])
def test_chunks_and_devices_change_no_prediction(whole, chunk, devices):
    engine = Engine(chunk=chunk, devices=jax.devices()[:devices])
    np.testing.assert_array_equal(run(engine, BOTH), whole)


def test_a_run_may_begin_anywhere():
    engine = Engine(chunk=7, devices=jax.devices()[:1])
    whole = run(engine)
    for start in (1, 7, 8, 22):
        got = run(engine, tasks=range(start, TASKS))
        np.testing.assert_array_equal(got, whole[start:])


def test_one_compilation_serves_data_sets_of_any_size(caplog):
    engine = Engine(chunk=8)
    with caplog.at_level(logging.INFO, "rdc_jax"):
        for per_class in (12, 15):
            run(engine, per_class=per_class)
    assert caplog.text.count("compiled judge_on_features for 8 tasks") == 1
    assert engine.compiling > 0


def test_chunks_are_even():
    engine = Engine(chunk=20, devices=jax.devices()[:1])
    chunks = engine.run(counter(engine), range(TASKS), max_batch=1)
    assert [len(each.counts) for each in chunks] == [12, 11]


def small_memory(count, room):
    """As a device without memory for more than so many tasks at a time."""

    def limited(numbers):
        if len(numbers) > room:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return count(numbers)

    return limited


def test_a_chunk_that_does_not_fit_is_halved_and_told(caplog):
    engine = Engine(chunk=16, devices=jax.devices()[:1])
    counts = run(engine, count=small_memory(counter(engine), room=5))
    np.testing.assert_array_equal(counts, run(Engine()))
    assert "a chunk of 12 tasks does not fit into memory" in caplog.text
    assert "going on with 3 at a time" in caplog.text


def test_a_task_too_large_for_a_device_is_told():
    engine = Engine(chunk=2, devices=jax.devices()[:1])
    with pytest.raises(UserError, match="one task a device does not fit"):
        run(engine, count=small_memory(counter(engine), room=0))


def test_other_errors_of_the_device_are_not_hidden():
    def fail(numbers):
        raise jax.errors.JaxRuntimeError("INTERNAL: broken")

    with pytest.raises(jax.errors.JaxRuntimeError, match="broken"):
        run(Engine(chunk=2), count=fail)
