"""Counts do not depend on how the work is divided."""

import logging

import jax
import numpy as np
import pytest
from evaluation.worlds import SPEC, make_features, make_judge, make_sampler

from rdc_jax.evaluation.engine import Engine
from rdc_jax.evaluation.feature_pass import FeaturePass
from rdc_jax.runtime.errors import UserError

EPISODES = 23
EIGHT = pytest.param(8, marks=pytest.mark.devices8)


@pytest.fixture(scope="module")
def world():
    feat_nd, labels_n = make_features()
    return make_judge("npc_l2", "rdc"), feat_nd, make_sampler(labels_n)


@pytest.fixture(scope="module")
def cheap(world):
    """The same tasks, and a judge that compiles in no time."""
    return make_judge("npc_l2"), *world[1:]


def run(engine, world, episodes=range(EPISODES)):
    """All blocks in one array; checks that they follow one another."""
    counts, following = [], episodes.start
    for block in engine.run(FeaturePass(*world), episodes):
        assert block.start == following
        following += len(block.counts)
        counts.append(block.counts)
    assert following == episodes.stop
    return np.concatenate(counts)


@pytest.fixture(scope="module")
def whole(world):
    return run(Engine(), world)


def plain_counts(world, number):
    """One episode with its rows gathered by NumPy, outside of any engine."""
    judge, feat_nd, sampler = world
    task = sampler(range(number, number + 1))
    return np.asarray(jax.jit(judge)(feat_nd[task.indices[0]], task.labels[0]))


def test_an_episode_s_counts_are_those_of_its_own_images(world, whole):
    for number in (0, 9, EPISODES - 1):
        np.testing.assert_array_equal(whole[number], plain_counts(world, number))


def test_methods_are_right_more_often_than_chance_but_not_always(world, whole):
    right_m = whole[:, : len(world[0].methods)].mean(axis=0) / SPEC.query_size
    assert (right_m > 1.5 / SPEC.way).all()
    assert (right_m < 0.99).all()


@pytest.mark.parametrize("devices", [1, 2, EIGHT])
@pytest.mark.parametrize("chunk", [1, 7, EPISODES])
def test_chunks_and_devices_change_no_prediction(world, whole, chunk, devices):
    engine = Engine(chunk=chunk, devices=jax.devices()[:devices])
    np.testing.assert_array_equal(run(engine, world), whole)


def test_a_run_may_begin_anywhere(cheap):
    engine = Engine(chunk=7, devices=jax.devices()[:1])
    whole = run(engine, cheap)
    for start in (1, 7, 8, 22):
        got = run(engine, cheap, range(start, EPISODES))
        np.testing.assert_array_equal(got, whole[start:])


def test_one_compilation_serves_data_sets_of_any_size(caplog):
    engine = Engine(chunk=8)
    with caplog.at_level(logging.INFO, "rdc_jax"):
        for per_class in (12, 15):
            feat_nd, labels_n = make_features(per_class=per_class)
            run(engine, (make_judge("npc"), feat_nd, make_sampler(labels_n)))
    assert caplog.text.count("compiled judge for 8 episodes") == 1
    assert engine.programs.seconds > 0


def test_chunks_are_even(cheap):
    engine = Engine(chunk=20, devices=jax.devices()[:1])
    blocks = engine.run(FeaturePass(*cheap), range(EPISODES))
    sizes = [len(block.counts) for block in blocks]
    assert sizes == [12, 11]


class SmallMemory(FeaturePass):
    """Has no memory for more than ``room`` episodes at a time."""

    room = 5

    def __call__(self, numbers, programs):
        if len(numbers) > self.room:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return super().__call__(numbers, programs)


def test_a_chunk_that_does_not_fit_is_halved_and_told(cheap, caplog):
    engine = Engine(chunk=16, devices=jax.devices()[:1])
    blocks = list(engine.run(SmallMemory(*cheap), range(EPISODES)))
    counts = np.concatenate([block.counts for block in blocks])
    np.testing.assert_array_equal(counts, run(Engine(), cheap))
    assert "a chunk of 12 episodes does not fit into memory" in caplog.text
    assert "going on with 3 at a time" in caplog.text


def test_a_task_too_large_for_a_device_is_told(cheap):
    engine, work = Engine(chunk=2, devices=jax.devices()[:1]), SmallMemory(*cheap)
    work.room = 0
    with pytest.raises(UserError, match="one episode a device does not fit"):
        list(engine.run(work, range(EPISODES)))


def test_other_errors_of_the_device_are_not_hidden(cheap, monkeypatch):
    engine = Engine(chunk=2, devices=jax.devices()[:1])

    def fail(*unused):
        raise jax.errors.JaxRuntimeError("INTERNAL: broken")

    monkeypatch.setattr(FeaturePass, "__call__", fail)
    with pytest.raises(jax.errors.JaxRuntimeError, match="broken"):
        run(engine, cheap)
