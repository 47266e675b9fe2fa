"""Training on tasks by a head: the objective, a run, and the methods of its model."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiny

from rdc_jax import models
from rdc_jax.methods import Task, get_method
from rdc_jax.methods.heads import replaced
from rdc_jax.models import BACKBONES
from rdc_jax.models.heads.episode import make_episode
from rdc_jax.models.model import Model
from rdc_jax.pretrain.logs import read_metrics
from rdc_jax.pretrain.objectives import Batch, Objective, get_objective
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime.errors import UserError

HEADS = ["gnn", "tpn", "relation(criterion=softmax)", "matching"]
MAPS = ("tpn", "relation")
WAY, SHOT, QUERY = 3, 1, 3
S = WAY * SHOT
LABELS = np.array([0, 1, 2, 2, 0, 1, 1, 2, 0, 2, 1, 0])
KEY = jax.random.key(0)


def task_flags(method):
    """Of a short run on tasks of the tiny images."""
    return {
        "method": method,
        "arch": "tiny_maps" if method.startswith(MAPS) else "resnet10",
        "epochs": 1,
        "steps_per_epoch": 2,
        "log_every": 1,
        "episode.way": WAY,
        "episode.shot": SHOT,
        "episode.query": QUERY,
        "validation.shots": "",
        "validation.episodes": 4,
    }


@pytest.fixture(autouse=True)
def tiny_backbone(monkeypatch):
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    monkeypatch.setitem(BACKBONES, "tiny_maps", tiny.TinyResNet)


@pytest.fixture(params=HEADS)
def objective(request, make_config):
    config = make_config()
    config.update_from_flattened_dict(task_flags(request.param))
    options = Options.from_config(config.to_dict())
    return get_objective(request.param)(options, 4)


def make_batch():
    images = np.random.default_rng(0).normal(size=(len(LABELS), 16, 16, 3))
    return Batch(jnp.asarray(images, jnp.float32), jnp.asarray(LABELS))


@functools.partial(jax.jit, static_argnums=(0, 3))
def answers(objective, variables, images, train):
    """The head's, asked by hand."""
    model = Model(objective.spec, variables)
    rows, _ = model.inputs(objective.head.inputs, images, train)
    episode = make_episode(
        *(rows[:S], LABELS[:S], rows[S:], WAY), query_labels=LABELS[S:]
    )
    return model.apply_head(episode, train=train, mutable=["batch_stats"])[0]


def test_the_loss_is_that_of_the_head_s_answers_to_the_queries(objective):
    assert isinstance(objective, Objective)
    variables = jax.jit(objective.init, static_argnums=1)(KEY, 16)
    batch = make_batch()
    for train in (True, False):
        loss, aux = jax.jit(objective.loss, static_argnames="train")(
            variables, batch, KEY, train=train
        )
        logits = answers(objective, variables, batch.images, train)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, LABELS[S:])
        assert float(loss) == pytest.approx(float(each.mean()), rel=1e-3)
        right = np.mean(np.argmax(logits, -1) == LABELS[S:])
        assert float(aux.metrics["accuracy"]) == pytest.approx(right)
        structure = jax.tree.structure(variables["batch_stats"])
        assert jax.tree.structure(aux.batch_stats) == structure
        for part in variables["batch_stats"]:  # The head's too, if it has any.
            before, after = (
                jax.tree.leaves(stats[part])
                for stats in (variables["batch_stats"], aux.batch_stats)
            )
            pairs = zip(before, after, strict=True)
            assert train != all(np.array_equal(*pair) for pair in pairs)


@pytest.fixture(scope="module")
def run_of(run_once, trained):
    """Train a head, warm-started; gives the work directory, to be read only."""

    @functools.cache
    def run_of(method):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(BACKBONES, "tiny_maps", tiny.TinyResNet)
            flags = task_flags(method)
            start = str(trained) if flags["arch"] == "resnet10" else ""
            return run_once(**flags, init_from=start)

    return run_of


def task_of(model):
    feat_nd = model(make_batch().images)
    return Task(feat_nd[:S], jnp.asarray(LABELS[:S]), feat_nd[S:], WAY)


def test_a_run_trains_the_head_from_a_backbone(run_of, trained):
    assert "val_3way_1shot" in read_metrics(run_of("gnn"))[-1]
    model, started = models.load_model(run_of("gnn")), models.load_model(trained)
    assert model.spec.head == "gnn" and "head" in model.variables["params"]
    pairs = zip(
        jax.tree.leaves(model.variables["params"]["backbone"]),
        jax.tree.leaves(started.variables["params"]["backbone"]),
        strict=True,
    )
    moved = max(np.abs(a - b).max() for a, b in pairs)
    assert 0 < moved < 0.02  # Two steps of Adam at .001 away from the start.


def test_a_head_on_maps_is_trained_and_validated_on_them(run_of):
    assert "val_3way_1shot" in read_metrics(run_of("tpn"))[-1]
    model = models.load_model(run_of("tpn"))
    maps, _ = model.inputs("maps", make_batch().images)
    assert maps.shape == (len(LABELS), 8, 8, 8)
    task = Task(maps[:S], jnp.asarray(LABELS[:S]), maps[S:], WAY)
    assert np.isfinite(jax.jit(get_method("tpn"))(task, model)).all()
    small = task.replace(support=maps[:S, :3, :3], query=maps[S:, :3, :3])
    with pytest.raises(UserError, match="images must have the size it was trained at"):
        jax.eval_shape(get_method("tpn"), small, model)
    with pytest.raises(UserError, match="has no blocks to take maps of"):
        models.load_model(run_of("gnn")).inputs("maps", make_batch().images)


def test_relation_networks_fit_scores_to_pairs_of_one_class(make_config):
    config = make_config()
    config.update_from_flattened_dict(task_flags("relation"))
    options = Options.from_config(config.to_dict())
    objective = get_objective("relation")(options, 4)
    scores = jnp.array([[0.3, -1.0, 2.0], [1.5, 0.0, -0.2]])
    loss, aux = objective.judge(scores, jnp.array([2, 1]), {})
    chance = 1 / (1 + np.exp(-np.asarray(scores)))
    want = np.mean((chance - np.eye(3)[[2, 1]]) ** 2)
    assert float(loss) == pytest.approx(want, rel=1e-5)
    assert float(aux.metrics["accuracy"]) == 0.5
    with pytest.raises(UserError, match="choose from mse, softmax"):
        get_objective("relation(criterion=l1)")(options, 4)


def test_the_model_answers_by_its_head_in_any_layout_and_moments(run_of):
    model = models.load_model(run_of("gnn"))
    task = task_of(model)
    for text in ("gnn", "gnn(layout=shuffled;moments=support)", "gnn(moments=running)"):
        method = get_method(text)
        method.check(task, model)
        dist_qc = jax.jit(method)(task, model)
        assert dist_qc.shape == (9, WAY) and np.isfinite(dist_qc).all()
    for other in ("npc_l2", "rdc(k=3;k2=2;dim=4)"):  # On its backbone.
        get_method(other).check(task, model)


def test_what_does_not_fit_a_head_is_told_in_a_line(run_of, trained):
    model = models.load_model(run_of("gnn"))
    task = task_of(model)
    with pytest.raises(UserError, match="a gnn head, this checkpoint has linear"):
        get_method("gnn").check(task, models.load_model(trained))
    with pytest.raises(UserError, match=r"for 3 classes, the tasks have 4: set --conf"):
        get_method("gnn").check(dataclasses.replace(task, num_classes=4), model)
    narrow = task.replace(support=task.support[:, :5], query=task.query[:, :5])
    with pytest.raises(UserError, match="do not fit what the network gives"):
        jax.eval_shape(get_method("gnn"), narrow, model)


def test_a_layout_by_labels_is_asked_for_by_a_name_that_says_so(run_of):
    model = models.load_model(run_of("gnn"))
    task, peeking = task_of(model), replaced(model, layout="balanced")
    with pytest.raises(UserError, match="lays queries out by their labels"):
        get_method("gnn").check(task, peeking)
    get_method("gnn(layout=one)").check(task, peeking)
    method = get_method("gnn_balanced")
    method.check(task, model)
    assert "query labels" in method.title and method.assumes_balance
    with pytest.raises(UserError, match="needs the labels"):
        method(task, model)
    one_of_each, in_a_row = jnp.tile(jnp.arange(3), 3), jnp.repeat(jnp.arange(3), 3)
    told = jax.jit(method.told)
    one, other = (told(task, model, labels) for labels in (one_of_each, in_a_row))
    assert np.abs(one - other).max() > 1e-4
    with pytest.raises(UserError, match="choose layout from one, shuffled"):
        get_method("gnn(layout=balanced)")


def test_a_loss_that_blows_up_is_told(run_once):
    flags = {"optimiser.learning_rate": 1e30, "epochs": 2}
    with pytest.raises(UserError, match="loss or its gradient is not finite at step"):
        run_once(**{**task_flags("gnn"), **flags})
