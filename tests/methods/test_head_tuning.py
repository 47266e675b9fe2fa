"""Heads that are tuned on each task, by tasks made of versions of its supports."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiny

from rdc_jax.data import transforms
from rdc_jax.methods import Task, get_method
from rdc_jax.models import BACKBONES
from rdc_jax.models.heads.episode import empty_episode, make_episode
from rdc_jax.models.model import Model, Spec
from rdc_jax.runtime.errors import UserError

WAY, SHOT, VERSIONS = 3, 2, 3
S, Q = WAY * SHOT, 4
LABELS = jnp.array([0, 0, 1, 1, 2, 2])
KEY = jax.random.key(5)
OPTIONS = (("edge_width", 8), ("growth", 4), ("way", WAY), ("width", 6))


@pytest.fixture(scope="module", autouse=True)
def tiny_backbone():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, "tiny", tiny.TinyNet)
        yield


@pytest.fixture(scope="module")
def model(tiny_backbone):
    spec = Spec("tiny", head="gnn", head_options=OPTIONS)
    images = jnp.zeros((1, tiny.SIZE, tiny.SIZE, 3))
    parts = {"backbone": tiny.TinyNet().init(jax.random.key(0), images)}
    head = Model(spec, {}).head
    episode = empty_episode((8,), way=WAY, shot=1, query=1)
    parts["head"] = jax.jit(head.init)(jax.random.key(1), episode)
    kinds = ("params", "batch_stats")
    return Model(spec, {k: {n: p[k] for n, p in parts.items()} for k in kinds})


@pytest.fixture(scope="module")
def task():
    draw = np.random.default_rng(0).integers
    support, query = (
        jnp.asarray(draw(0, 256, (n, 18, 18, 3)), jnp.uint8) for n in (S, Q)
    )
    return Task(support, LABELS, query, WAY, key=jax.random.key(3))


def method(**changes):
    made = get_method("gnn_tuned(pseudo=12;steps=1)", image_size=tiny.SIZE)
    return dataclasses.replace(made, **changes)


def supports_of(split):
    """Image and version of each support of a made task."""
    labels = jnp.repeat(LABELS, VERSIONS)
    flags = method(split=split)._supports(KEY, labels, VERSIONS)
    return [(i // VERSIONS, i % VERSIONS) for i in np.flatnonzero(flags)]


def test_which_versions_are_supports():
    assert supports_of("originals") == [(i, 0) for i in range(S)]
    # The first two of each class in a row: the first image, and a version of it.
    assert supports_of("published") == [(i, v) for i in (0, 2, 4) for v in (0, 1)]
    drawn = supports_of("shuffled")
    assert [image // SHOT for image, _ in drawn] == [0, 0, 1, 1, 2, 2]
    assert drawn not in (supports_of("originals"), supports_of("published"))


def test_a_step_is_adams_on_a_task_of_the_originals_and_their_versions(model, task):
    got = jax.jit(method().step)(jax.jit(method().init)(KEY, model, task), task, KEY)

    plain = transforms.test_batch(task.support, tiny.SIZE)
    make_set = jax.jit(transforms.pseudo_set, static_argnums=2)
    made = make_set(jax.random.split(KEY)[0], plain, VERSIONS)
    copies = made[:, 1:].reshape(-1, *made.shape[2:])
    images = jnp.concatenate([made[:, 0], copies])
    labels = jnp.concatenate([LABELS, jnp.repeat(LABELS, VERSIONS - 1)])

    def loss(params):
        moved = model.replace(variables={**model.variables, "params": params})
        rows, *_ = moved.apply(images, train=True)
        episode = make_episode(rows[:S], LABELS, rows[S:], WAY)
        logits, _ = moved.apply_head(episode, train=True, mutable=["batch_stats"])
        surprise = -jax.nn.log_softmax(logits)
        return surprise[jnp.arange(len(labels) - S), labels[S:]].mean()

    params = model.variables["params"]

    @jax.jit
    def step(params):
        grads, adam = jax.grad(loss)(params), optax.adam(1e-3)
        updates, _ = adam.update(grads, adam.init(params))
        return optax.apply_updates(params, updates), grads

    want, grads = step(params)
    sure = jax.tree.map(lambda grad: np.abs(grad) > 1e-4, grads)
    trees = got.model.variables["params"], want, sure
    leaves = (map(np.asarray, jax.tree.leaves(tree)) for tree in trees)
    for ours, theirs, where in zip(*leaves, strict=True):
        np.testing.assert_allclose(ours[where], theirs[where], atol=2e-5)
    for part in ("backbone", "head"):
        before, after = (
            jax.tree.leaves(m.variables["batch_stats"][part])
            for m in (model, got.model)
        )
        assert any((a != b).any() for a, b in zip(before, after, strict=True))


def test_without_steps_it_is_the_head_by_the_statistics_of_the_task(model, task):
    rows, *_ = model.apply(
        transforms.test_batch(jnp.concatenate([task.support, task.query]), tiny.SIZE),
        train=True,
    )
    want = -model.apply_head(make_episode(rows[:S], LABELS, rows[S:], WAY))
    got = jax.jit(method(steps=0))(task, model)
    np.testing.assert_allclose(got, want, atol=1e-4)
    other = task.replace(query=task.query.at[1:].set(255 - task.query[1:]))
    changed = jax.jit(method(steps=0))(other, model)
    assert np.abs(changed[0] - got[0]).max() > 1e-4


def test_queries_play_no_part_in_tuning(model, task):
    step = jax.jit(method().step)
    other = task.replace(query=255 - task.query)
    states = [
        step(method().init(KEY, model, each), each, KEY) for each in (task, other)
    ]
    jax.tree.map(np.testing.assert_array_equal, *(s.optimiser for s in states))


def test_it_says_what_it_cannot_do(model, task):
    with pytest.raises(UserError, match=r"5 pseudo-samples are fewer than the 6 supp"):
        method(pseudo=5).check(task, model)
    with pytest.raises(UserError, match="for 3 classes, the tasks have 4"):
        method().check(dataclasses.replace(task, num_classes=4), model)
    with pytest.raises(UserError, match="it needs a model with a gnn head"):
        method().check(task, model.replace(spec=Spec("tiny")))
    for text in ("gnn_tuned(steps=-1)", "gnn_tuned(split=halves)"):
        with pytest.raises(UserError, match=r"steps is -1|choose split from"):
            get_method(text)


@pytest.mark.parametrize(
    ("text", "transductive"),
    [
        ("gnn_tuned", True),
        ("matching_tuned", True),
        ("matching_tuned(by_batch=False)", False),
        ("tpn_by_batch", True),
    ],
)
def test_statistics_of_the_task_make_any_head_transductive(text, transductive):
    assert get_method(text).transductive == transductive
