"""What the tests of meta-training share: objectives, tasks and steps in small."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tiny import SIZE

from rdc_jax.configs.pretrain import get_config
from rdc_jax.pretrain.objectives import Batch, get_objective
from rdc_jax.pretrain.options import Options
from rdc_jax.pretrain.step import create_state, make_train_step
from rdc_jax.runtime.processes import Layout, put_batch

KEY = jax.random.key(0)
TASK = {"way": 2, "shot": 1, "query": 3}
LABELS = np.array([0, 1, 1, 0, 0, 1, 0, 1], np.int32)


def make(text, *, arch="tiny_resnet", **settings):
    """An objective by its text, on tasks of 8 images."""
    config = get_config("protonet,test")
    config.update(method=text, arch=arch, image_size=SIZE, episode=TASK)
    with config.unlocked():
        config.update_from_flattened_dict(settings)
    return get_objective(text)(Options.from_config(config.to_dict()), 4)


@functools.partial(jax.jit, static_argnums=0)
def init(objective):
    return objective.init(KEY, SIZE)


@functools.partial(jax.jit, static_argnums=0, static_argnames="train")
def loss_of(objective, variables, batch, key=KEY, train=True):
    return objective.loss(variables, batch, key, train=train)


def batch_of(labels=LABELS, seed=0):
    images = np.random.default_rng(seed).normal(size=(len(labels), SIZE, SIZE, 3))
    return Batch(jnp.asarray(images, jnp.float32), jnp.asarray(labels))


def layout_of(devices):
    mesh = Mesh(np.array(jax.devices()[:devices]), ("batch",))
    return Layout(
        NamedSharding(mesh, PartitionSpec("batch")),
        NamedSharding(mesh, PartitionSpec()),
    )


def stored(labels=LABELS):
    images = np.random.default_rng(0).integers(0, 256, (len(labels), SIZE, SIZE, 3))
    return {
        "image": images.astype(np.uint8),
        "label": labels,
        "aspect": np.ones(len(labels), np.float32),
    }


def steps(objective, number, *, devices=1, optimiser=None, labels=LABELS):
    """The states after each step, the first before any."""
    optimiser, layout = optimiser or optax.sgd(0.1), layout_of(devices)
    step = make_train_step(objective, optimiser, SIZE, layout=layout)
    state = create_state(objective, optimiser, init(objective), average=False)
    states = [jax.device_put(state, layout.replicated)]
    for _ in range(number):
        old = jax.tree.map(jnp.copy, states[-1])
        states.append(step(KEY, old, put_batch(layout, stored(labels)))[0])
    return states


def lowered(objective, optimiser, labels=LABELS):
    """The accelerators that a step can be compiled for."""
    step = make_train_step(objective, optimiser, SIZE, layout=layout_of(1))

    def initial_state():
        variables = objective.init(KEY, SIZE)
        return create_state(objective, optimiser, variables, average=False)

    shapes = (KEY, jax.eval_shape(initial_state), stored(labels))
    return set(export.export(step, platforms=["cuda", "tpu"])(*shapes).platforms)


def assert_close(one, other, **tolerance):
    jax.tree.map(functools.partial(np.testing.assert_allclose, **tolerance), one, other)


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)
