"""Stages before the first weight that trains run once, by running statistics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

import rdc_jax
from rdc_jax.data.transforms import test_batch as transformed
from rdc_jax.methods import Task, get_method
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.methods.trainable import frozen_stages
from rdc_jax.models.model import wrap

PARAMS = rdc_jax.RDCParams(k=4, k2=3, dim=4)
NETWORK = tiny.TinyResNet(stem=4)


@pytest.fixture(scope="module")
def model():
    images = jax.random.normal(jax.random.key(1), (4, tiny.SIZE, tiny.SIZE, 3))
    start = jax.jit(NETWORK.init)(jax.random.key(0), images)
    # Running statistics that are not those of any batch, as a checkpoint's.
    stats = jax.tree.map(lambda leaf: leaf + 0.1, start["batch_stats"])
    return wrap(NETWORK, {"params": start["params"], "batch_stats": stats})


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (12, 20, 20, 3)).astype(np.uint8)
    return Task(
        jnp.asarray(images[:3]),
        jnp.arange(3),
        jnp.asarray(images[3:]),
        num_classes=3,
        key=jax.random.key(3),
    )


def make(name="rdc_ft", **options):
    options = FinetuneOptions(**{"learning_rate": 1e-2, **options})
    return get_method(name, rdc=PARAMS, finetune=options, image_size=tiny.SIZE)


def train(method, model, task, steps=2):
    state = jax.jit(method.init)(jax.random.key(0), model, task)
    step = jax.jit(method.step)
    for number in range(steps):
        state = step(state, task, jax.random.fold_in(task.key, number))
    return state


def stats_of(state, block):
    return state.model.variables["batch_stats"]["backbone"][block]


def same(one, other):
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_rest_of_a_network_gives_what_the_whole_gives(model, count):
    images = jax.random.normal(jax.random.key(2), (3, tiny.SIZE, tiny.SIZE, 3))
    feat_nd, named, _ = model.apply(images)
    rest = model.after(count)
    assert np.array_equal(rest.apply(named[model.stages[count - 1]])[0], feat_nd)


def test_the_kept_maps_give_the_network_s_own_features(model, task):
    state = train(make(layers=("block2",)), model, task, 0)
    assert state.entered.shape == (1, 12, 4, 4, 4)
    images = transformed(jnp.concatenate([task.support, task.query]), tiny.SIZE)
    got = make(layers=("block2",)).features(state, task)
    np.testing.assert_allclose(got, model.embed(images), atol=1e-6)


def test_steps_on_kept_maps_are_those_of_the_whole_network(model, task):
    """The same steps, whose gradients go through the whole network each time."""

    def network(variables, images, train):  # Nobody knows its stages.
        return NETWORK.apply(variables, images, train=train), {}

    whole = wrap(network, {k: t["backbone"] for k, t in model.variables.items()})
    method = make(layers=("block2",), batch_norm="running")
    part, other = train(method, model, task), train(method, whole, task)
    assert other.entered.shape[2:] == (tiny.SIZE, tiny.SIZE, 3)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5),
        part.params["network"],
        other.params["network"],
    )


def test_only_what_trains_sees_the_batch_s_statistics(model, task):
    state = train(make(layers=("block2",), batch_norm="updated"), model, task)
    before = model.variables["batch_stats"]["backbone"]
    assert same(stats_of(state, "block1"), before["block1"])
    assert not same(stats_of(state, "block2"), before["block2"])


def test_augmented_images_go_through_the_frozen_stages_each_step(model, task):
    method = make(layers=("block2",), augment=True)
    one, other = (
        train(method, model, task.replace(key=jax.random.key(number)), 1)
        for number in (1, 2)
    )
    assert not same(one.params["network"], other.params["network"])
    plain = train(make(layers=("block2",)), model, task, 1)
    assert not same(one.params["network"], plain.params["network"])


def test_a_head_alone_needs_no_network_after_the_first_pass(model, task):
    state = train(make("finetune_linear"), model, task)
    assert state.entered.shape == (1, 12, 2, 2, 8)


def test_an_image_and_its_mirror_image_answer_together(model, task):
    method = make(layers=("block2",), mirror=True)
    state = train(method, model, task, 0)
    images = transformed(jnp.concatenate([task.support, task.query]), tiny.SIZE)
    want = (model.embed(images) + model.embed(images[:, :, ::-1])) / 2
    np.testing.assert_allclose(method.features(state, task), want, atol=1e-6)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((), 0),
        (("none",), 3),
        (("block2",), 2),
        (("block1", "block2"), 1),
        (("*norm*",), 0),
        (("block2.conv2",), 2),
    ],
)
def test_stages_are_frozen_up_to_the_first_that_trains(model, layers, expected):
    params = model.variables["params"]["backbone"]
    assert frozen_stages(params, layers, model.stages) == expected
