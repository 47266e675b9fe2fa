"""Fine-tuning gives the same counts however the tasks are divided and driven."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from evaluation.worlds import PARAMS, make_sampler
from jax import export

from rdc_jax import methods, models
from rdc_jax.data.episodes import EpisodeSpec
from rdc_jax.evaluation.engine import Engine
from rdc_jax.evaluation.finetune_pass import FinetunePass, Steps
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.models.functional import apply_fn

SPEC = EpisodeSpec(way=4, shot=1, query=4)
EPISODES = 9
NETWORK = tiny.TinyNet()
OPTIONS = FinetuneOptions(steps=3, learning_rate=1e-2, record=(1,), augment=True)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    labels_n = np.repeat(np.arange(5), 8).astype(np.int32)
    colour = rng.integers(60, 190, (5, 1, 1, 3))[labels_n]
    noise = rng.integers(-100, 100, (len(labels_n), 18, 18, 3))
    return (colour + noise).clip(0, 255).astype(np.uint8), labels_n


@pytest.fixture(scope="module")
def variables():
    shape = jnp.zeros((1, tiny.SIZE, tiny.SIZE, 3))
    return jax.jit(NETWORK.init)(jax.random.key(0), shape)


def make_pass(images, variables, **options):
    finetune = dataclasses.replace(OPTIONS, **options)
    method = methods.get_method("rdc_ft", rdc=PARAMS, finetune=finetune)
    finetuner = method.finetuner(apply_fn(NETWORK), SPEC.way, tiny.SIZE)
    pixels, labels_n = images
    steps = Steps("rdc_ft", finetuner, SPEC.support_size)
    sampler = make_sampler(labels_n, spec=SPEC)
    return FinetunePass(steps, variables, pixels, sampler, seed=0)


def run(engine, work):
    blocks = list(engine.run(work, range(EPISODES)))
    return np.concatenate([block.counts for block in blocks])


@pytest.fixture(scope="module")
def whole(images, variables):
    engine = Engine(devices=jax.devices()[:1])
    return run(engine, make_pass(images, variables))


def test_counts_are_those_of_one_task_by_itself(images, variables, whole):
    work, (pixels, labels_n) = make_pass(images, variables), images
    assert work._steps.columns == ("rdc_ft@1", "rdc_ft")
    number = 5
    task = make_sampler(labels_n, spec=SPEC)(range(number, number + 1))
    key = jax.random.fold_in(jax.random.key(0), number)
    counts = jax.jit(work._steps.train)(
        variables, pixels[task.indices[0]], task.labels[0], key
    )
    np.testing.assert_array_equal(counts, whole[number])
    assert whole.min() > 0 and whole.max() <= SPEC.query_size


@pytest.mark.parametrize(
    ("devices", "chunk", "loop"),
    [
        (2, 0, "python"),
        (1, 7, "python"),
        (1, EPISODES, "compiled"),
        (2, 2, "compiled"),
        pytest.param(8, 0, "python", marks=pytest.mark.devices8),
        pytest.param(8, 8, "compiled", marks=pytest.mark.devices8),
    ],
)
def test_chunks_devices_and_loops_change_no_prediction(
    images, variables, whole, devices, chunk, loop
):
    engine = Engine(chunk=chunk, devices=jax.devices()[:devices])
    got = run(engine, make_pass(images, variables, loop=loop))
    np.testing.assert_array_equal(got, whole)


def test_a_cpu_takes_one_task_a_device_and_others_what_fits(images, variables):
    work = make_pass(images, variables)
    assert work.most(1000) == 1
    few, many = (work.fitting(1000, budget=mib << 20) for mib in (16, 64))
    assert 1 <= few < many < 1000
    assert many == pytest.approx(4 * few, rel=0.5)


@pytest.mark.parametrize(
    "name", ["finetune", "finetune_linear", "npc_l2_da", "rdc_da", "rdc_ft_one_space"]
)
def test_every_method_that_trains_can_be_evaluated(images, variables, name):
    pixels, labels_n = images
    method = methods.get_method(name, rdc=PARAMS, finetune=OPTIONS)
    finetuner = method.finetuner(apply_fn(NETWORK), SPEC.way, tiny.SIZE)
    steps = Steps(name, finetuner, SPEC.support_size)
    sampler = make_sampler(labels_n, spec=SPEC)
    work = FinetunePass(steps, variables, pixels, sampler, seed=0)
    (block,) = Engine(chunk=4, devices=jax.devices()[:1]).run(work, range(4))
    assert block.counts.shape == (4, 2)
    assert 0 < block.counts.mean() <= SPEC.query_size


@pytest.mark.parametrize("name", ["rdc_ft", "rdc_ft_mse"])
def test_a_step_over_tasks_lowers_for_accelerators(name):
    model = models.create("resnet10", conv="xla")
    method = methods.get_method(name, rdc=PARAMS, finetune=OPTIONS)
    finetuner = method.finetuner(apply_fn(model), SPEC.way, 32)
    steps = Steps(name, finetuner, SPEC.support_size)
    n = SPEC.support_size + SPEC.query_size
    variables = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
    shapes = (
        jax.ShapeDtypeStruct((2, n, 36, 36, 3), np.uint8),
        jax.ShapeDtypeStruct((2, n), np.int32),
        jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 2)),
    )
    mapped = jax.jit(jax.vmap(steps.train, in_axes=(None, 0, 0, 0)))
    exported = export.export(mapped, platforms=["cuda", "tpu"])(variables, *shapes)
    assert set(exported.platforms) == {"cuda", "tpu"}
