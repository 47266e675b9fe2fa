"""The protocol of objectives, and each objective against plain NumPy."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from tiny import SIZE, TinyNet

from rdc_jax.models import BACKBONES
from rdc_jax.models.model import Spec
from rdc_jax.pretrain.objectives import OBJECTIVES, Batch, Objective, get_objective
from rdc_jax.pretrain.objectives.cross_entropy import CrossEntropy
from rdc_jax.pretrain.objectives.protonet import ProtoNet
from rdc_jax.pretrain.step import create_state, make_train_step
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.processes import make_layout, put_batch

KEY = jax.random.key(0)
PROTONET = ProtoNet(Spec("tiny"), way=3, shot=2)
CLASSIFIER = CrossEntropy(
    Spec("tiny", head="linear", head_options=(("num_classes", 4),))
)
init = jax.jit(lambda objective, *args: objective.init(*args), static_argnums=(0, 2))
loss_of = jax.jit(
    lambda objective, *args, train=True: objective.loss(*args, train=train),
    static_argnums=0,
    static_argnames="train",
)
TASK_LABELS = [0, 0, 1, 1, 2, 2, 2, 0, 1, 1, 2, 0]


@pytest.fixture(autouse=True)
def tiny_backbone(monkeypatch):
    monkeypatch.setitem(BACKBONES, "tiny", TinyNet)


def batch_of(labels):
    images = np.random.default_rng(0).normal(size=(len(labels), SIZE, SIZE, 3))
    return Batch(jnp.asarray(images, jnp.float32), jnp.asarray(labels))


def features(variables, batch):
    inner = {name: tree["backbone"] for name, tree in variables.items()}
    out = TinyNet().apply(inner, batch.images, train=True, mutable=["batch_stats"])
    return np.asarray(out[0][0], np.float64)


def test_label_smoothing_is_the_mean_with_uniform_targets():
    batch = batch_of(np.arange(16) % 4)
    variables = init(CLASSIFIER, KEY, SIZE)
    plain, _ = loss_of(CLASSIFIER, variables, batch, KEY)
    smooth = dataclasses.replace(CLASSIFIER, label_smoothing=0.2)
    loss, _ = loss_of(smooth, variables, batch, KEY)
    head = variables["params"]["head"]
    logits = features(variables, batch) @ head["kernel"] + head["bias"]
    log_p = np.asarray(jax.nn.log_softmax(logits))
    assert plain == pytest.approx(-log_p[np.arange(16), batch.labels].mean(), abs=1e-5)
    expected = 0.8 * float(plain) - 0.2 * log_p.mean()
    assert loss == pytest.approx(expected, abs=1e-5)


def test_protonet_is_the_softmax_of_squared_distances_to_class_means():
    batch = batch_of(TASK_LABELS)
    variables = init(PROTONET, KEY, SIZE)
    loss, aux = loss_of(PROTONET, variables, batch, KEY)
    feat = features(variables, batch)
    losses, right = [], []
    for feature, label in zip(feat[6:], TASK_LABELS[6:], strict=True):
        squares = [
            np.sum((feature - feat[2 * c : 2 * c + 2].mean(0)) ** 2) for c in range(3)
        ]
        losses.append(squares[label] + np.log(np.sum(np.exp(-np.array(squares)))))
        right.append(np.argmin(squares) == label)
    assert float(loss) == pytest.approx(np.mean(losses), abs=1e-5)
    assert float(aux.metrics["accuracy"]) == pytest.approx(np.mean(right))


def test_protonet_has_finite_gradients_on_equal_images():
    batch = batch_of(TASK_LABELS)
    batch = batch._replace(images=jnp.zeros_like(batch.images))
    grads = jax.jit(jax.grad(lambda v: PROTONET.loss(v, batch, KEY)[0]))(
        init(PROTONET, KEY, SIZE)
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads["params"]))


@pytest.mark.parametrize("objective", [CLASSIFIER, PROTONET])
def test_every_objective_keeps_the_protocol(objective):
    assert isinstance(objective, Objective)
    variables = init(objective, KEY, SIZE)
    batch = batch_of(TASK_LABELS)
    _, training = loss_of(objective, variables, batch, KEY)
    _, evaluating = loss_of(objective, variables, batch, KEY, train=False)
    assert set(training.metrics) == set(objective.metrics)
    structure = jax.tree.structure(variables["batch_stats"])
    assert jax.tree.structure(training.batch_stats) == structure
    jax.tree.map(
        np.testing.assert_array_equal, evaluating.batch_stats, variables["batch_stats"]
    )


@dataclasses.dataclass(frozen=True)
class Shifted:
    """Wraps an objective: images move along their gradient, by a random length."""

    inner: Any

    def __getattr__(self, name):
        return getattr(self.inner, name)

    @property
    def metrics(self):
        return (*self.inner.metrics, "moved")

    def loss(self, variables, batch, key, *, train=True):
        def inner_loss(images):
            moved = batch._replace(images=images)
            return self.inner.loss(variables, moved, key, train=False)[0]

        moves = jax.random.uniform(key) * jax.grad(inner_loss)(batch.images)
        batch = batch._replace(images=batch.images + moves)
        loss, aux = self.inner.loss(variables, batch, key, train=train)
        moved = {"moved": jnp.abs(moves).max()}
        return loss, aux._replace(metrics=aux.metrics | moved)


def first_step(objective, key=KEY):
    """The states before and after a step."""
    optimiser, layout = optax.sgd(0.1), make_layout()
    step = make_train_step(objective, optimiser, SIZE, layout=layout)
    images = np.random.default_rng(0).integers(0, 256, (12, SIZE, SIZE, 3))
    stored = {
        "image": images.astype(np.uint8),
        "label": np.array(TASK_LABELS, np.int32),
        "aspect": np.ones(12, np.float32),
    }
    variables = init(objective, KEY, SIZE)
    state = create_state(objective, optimiser, variables, average=False)
    replicated = jax.device_put(state, layout.replicated)
    before = jax.tree.map(jnp.copy, replicated)
    return before, step(key, replicated, put_batch(layout, stored))[0]


def test_an_adversary_may_wrap_an_objective():
    objective = Shifted(PROTONET)
    moved = [
        float(first_step(objective, jax.random.key(i))[1].sums["moved"])
        for i in range(2)
    ]
    assert moved[0] > 0
    assert moved[0] != moved[1]


class PlainNet(nn.Module):
    """A network without batch norm; made as backbones are."""

    dtype: Any = None
    conv: str = "auto"

    @nn.compact
    def __call__(self, images, *, train=False):
        return nn.Dense(4)(images.mean((1, 2))), {}


def test_a_backbone_needs_no_batch_norm(monkeypatch):
    monkeypatch.setitem(BACKBONES, "plain", PlainNet)
    objective = dataclasses.replace(PROTONET, spec=Spec("plain"))
    before, after = first_step(objective)
    assert jax.tree.structure(before) == jax.tree.structure(after)


def test_parameters_of_an_objective_are_written_behind_its_name(monkeypatch):
    def of_mine(options, num_classes, *, power=1.0, inner="protonet"):
        return options, num_classes, power, inner

    monkeypatch.setitem(OBJECTIVES, "of_mine", of_mine)
    assert get_objective("of_mine")("options", 4)[2:] == (1.0, "protonet")
    assert get_objective("of_mine(power=3)")("options", 4)[2:] == (3.0, "protonet")
    for text in ("of_mine(sower=3)", "of_mine(power=x)"):
        with pytest.raises(UserError, match="its parameters are power, inner"):
            get_objective(text)
    with pytest.raises(UserError, match="did you mean of_mine"):
        get_objective("off_mine")


def test_what_wraps_an_objective_may_stand_behind_it(monkeypatch):
    def wraps(options, num_classes, *, inner="protonet", words=("a",), rate=1.0):
        return inner, words, rate

    monkeypatch.setitem(OBJECTIVES, "wraps", wraps)
    made = get_objective("protonet+wraps(words=b+c)+wraps(rate=1e+2)")("options", 4)
    assert made == ("protonet+wraps(words=b+c)", ("a",), 100.0)
    same = get_objective("wraps(inner=protonet;rate=2)")("options", 4)
    assert same == get_objective("protonet+wraps(rate=2)")("options", 4)
    for text, message in (
        ("wraps+protonet", "protonet wraps no other objective"),
        ("prototype+wraps", "unknown objective 'prototype': did you mean protonet"),
        ("wraps(inner=protonet(a=1))", "its parameters are none"),
    ):
        with pytest.raises(UserError, match=message):
            get_objective(text)
