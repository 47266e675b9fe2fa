"""A head trained alone, on what a network that stays as it is makes of the images."""

import itertools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiny

from rdc_jax import models
from rdc_jax.data.batches import task_batches
from rdc_jax.data.transforms import test_batch as at_test
from rdc_jax.models import BACKBONES
from rdc_jax.models.heads.episode import make_episode
from rdc_jax.models.model import Model
from rdc_jax.pretrain import frozen
from rdc_jax.pretrain.input_pipeline import open_images
from rdc_jax.pretrain.logs import read_metrics
from rdc_jax.pretrain.objectives import get_objective
from rdc_jax.pretrain.options import Options
from rdc_jax.pretrain.run import pretrain
from rdc_jax.pretrain.setup import Run
from rdc_jax.runtime.errors import UserError

WAY, SHOT, QUERY = 3, 1, 3
S = WAY * SHOT


@pytest.fixture(autouse=True)
def tiny_backbone(monkeypatch):
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    monkeypatch.setitem(BACKBONES, "tiny_maps", tiny.TinyResNet)


def flags(trained, method="matching(context=none)", **settings):
    """Of a run of four tasks on the network of another run."""
    return {
        "method": method,
        "init_from": str(trained),
        "frozen_views": 1,
        "epochs": 2,
        "steps_per_epoch": 2,
        "log_every": 1,
        "episode.way": WAY,
        "episode.shot": SHOT,
        "episode.query": QUERY,
        "validation.shots": "",
        "validation.episodes": 4,
        **settings,
    }


def set_up(make_config, trained, *args, **settings):
    config = make_config()
    config.update_from_flattened_dict(flags(trained, *args, **settings))
    return config


@pytest.fixture(scope="module")
def head_run(run_once, trained):
    """A GNN on two versions of each image."""
    return run_once(**flags(trained, "gnn", frozen_views=2))


def test_the_head_learns_by_the_steps_of_a_plain_loop(make_config, trained, tmp_path):
    config = set_up(make_config, trained, "gnn")
    config.optimiser.update(name="sgd", learning_rate=0.1)
    options = Options.from_config(config.to_dict())
    images = open_images(options, tmp_path)
    run = Run(options, images, {})
    state = run.initial_state()
    head = jax.tree.map(jnp.copy, Model(run.objective.spec, state.variables))
    params, stats = (head.variables[kind]["head"] for kind in ("params", "batch_stats"))
    feat_nd = models.load_backbone(trained)(at_test(images.base.images, tiny.SIZE))
    sgd = optax.sgd(0.1, momentum=0.9, nesterov=True)
    moments = sgd.init(params)

    def loss_of(params, stats, rows, labels):
        logits, new = head.head.apply(
            {"params": params, "batch_stats": stats},
            make_episode(rows[:S], labels[:S], rows[S:], WAY),
            train=True,
            mutable=["batch_stats"],
        )
        each = optax.softmax_cross_entropy_with_integer_labels(logits, labels[S:])
        return each.mean(), new["batch_stats"]

    gradient = jax.jit(jax.value_and_grad(loss_of, has_aux=True))
    tasks = task_batches(images.base, options.episode, seed=options.seed)
    for batch, task in zip(run.batches(0), itertools.islice(tasks, 3), strict=False):
        state, loss = run.train_step(tiny.SIZE)(run.key, state, batch)
        rows, labels = feat_nd[task["index"]], jnp.asarray(task["label"])
        (want, stats), grads = gradient(params, stats, rows, labels)
        updates, moments = sgd.update(grads, moments)
        params = optax.apply_updates(params, updates)
        assert float(loss) == pytest.approx(float(want), rel=1e-3)
    assert int(state.step) == 3
    moved, apart = (
        float(optax.tree.norm(optax.tree.sub(x, params)))
        for x in (head.variables["params"]["head"], state.variables["params"]["head"])
    )
    assert apart < 0.05 * moved


def test_the_network_stays_as_it_is_and_the_checkpoint_is_whole(head_run, trained):
    model, start = models.load_model(head_run), models.load_backbone(trained)
    jax.tree.map(
        np.testing.assert_array_equal,
        model.variables_of("backbone"),
        start.variables_of("backbone"),
    )
    assert model.fingerprint == start.fingerprint
    assert model.spec.head == "gnn"
    assert "val_3way_1shot" in read_metrics(head_run)[-1]


def test_a_version_depends_on_the_image_and_the_seed_alone(make_config, trained):
    model = models.load_backbone(trained)
    images = np.random.default_rng(0).integers(0, 256, (4, tiny.SIZE, tiny.SIZE, 3))
    aspects, places = np.ones(4, np.float32), np.arange(4)

    def versions(rows, seed=0):
        parts = images[rows].astype(np.uint8), aspects[rows], places[rows]
        made = frozen.versions("features", tiny.SIZE, 3, seed, model, *parts)
        return np.asarray(made)

    every = versions(np.arange(4))
    assert every.shape == (4, 3, 8)
    np.testing.assert_allclose(every[[2, 0]], versions(np.array([2, 0])), atol=1e-5)
    assert np.abs(every[:, 1] - every[:, 2]).max() > 1e-3
    np.testing.assert_array_equal(every[:, 0], versions(np.arange(4), seed=1)[:, 0])
    assert np.abs(every - versions(np.arange(4), seed=1))[:, 1:].max() > 1e-3


@pytest.mark.slow
def test_a_resumed_run_ends_in_the_same_bits(make_config, head_run, trained, tmp_path):
    config = set_up(make_config, trained, "gnn", frozen_views=2)
    pretrain(config.to_dict(), tmp_path / "run")
    for step in (tmp_path / "run" / "checkpoints").iterdir():
        if step.name == "4":
            step.rename(tmp_path / "gone")
    pretrain(config.to_dict(), tmp_path / "run")
    one, other = (models.load_model(p / "latest") for p in (tmp_path / "run", head_run))
    jax.tree.map(np.testing.assert_array_equal, one.variables, other.variables)


@pytest.mark.slow
def test_a_run_on_images_goes_on_with_the_head(make_config, head_run, tmp_path, caplog):
    config = set_up(make_config, head_run, "gnn", frozen_views=0)
    config.optimiser.learning_rate = 0.0
    with caplog.at_level(logging.INFO, "rdc_jax"):
        pretrain(config.to_dict(), tmp_path / "run")
    assert "the gnn head begins from" in caplog.text
    one, other = (models.load_model(path) for path in (tmp_path / "run", head_run))
    for part in ("backbone", "head"):
        jax.tree.map(
            np.testing.assert_array_equal,
            one.variables["params"][part],
            other.variables["params"][part],
        )


def test_a_head_for_other_tasks_is_refused(make_config, head_run, tmp_path):
    config = set_up(make_config, head_run, "gnn")
    config.episode.way = 2
    with pytest.raises(UserError, match="is for tasks of other ways"):
        pretrain(config.to_dict(), tmp_path / "run")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"init_from": ""}, "say of which one by --config.init_from"),
        ({"method": "protonet"}, "which --config.frozen_views keeps as it is"),
        ({"method": "gnn+ata"}, "which --config.frozen_views keeps as it is"),
        ({"phases": "8:0.5"}, "set --config.phases="),
    ],
)
def test_what_needs_more_than_features_is_refused(
    make_config, trained, tmp_path, settings, message
):
    config = set_up(make_config, trained, **settings)
    with pytest.raises(UserError, match=message):
        pretrain(config.to_dict(), tmp_path / "run")


def test_noise_within_the_network_is_refused(make_config, trained):
    config = set_up(make_config, trained, "gnn+ft", arch="tiny_maps")
    options = Options.from_config(config.to_dict())
    objective = get_objective(options.method)(options, 4)
    with pytest.raises(UserError, match="works on images or within the network"):
        frozen.check(objective, options)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gnn+lrp", "matching"])
def test_other_heads_train_so_too(run_once, trained, method):
    lines = read_metrics(run_once(**flags(trained, method, frozen_views=2)))
    assert all(np.isfinite(line["loss"]) for line in lines if "loss" in line)
