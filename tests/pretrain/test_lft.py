"""Learned feature-wise transformation over several domains."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from pretrain.meta import (
    KEY,
    LABELS,
    assert_close,
    batch_of,
    init,
    lowered,
    make,
    steps,
)

from rdc_jax.models import BACKBONES, load_model
from rdc_jax.models.conv import Conv
from rdc_jax.models.norm import BatchNorm
from rdc_jax.pretrain.logs import read_metrics
from rdc_jax.pretrain.objectives import Objective, gradients
from rdc_jax.pretrain.run import pretrain
from rdc_jax.runtime.errors import UserError

SIZES = (4, 8, 8)  # Images, then a task of each domain.
BATCH = np.concatenate([np.arange(4, dtype=np.int32), LABELS, LABELS])


class SmoothNet(nn.Module):
    """A network that takes a norm, and has a second derivative everywhere."""

    dtype: Any = jnp.float32
    conv: str = "auto"
    last_norm: Any = BatchNorm

    @nn.compact
    def __call__(self, images, *, train=False):
        x = Conv(4, 3, name="conv1")(images)
        x = nn.tanh(self.last_norm(name="norm1")(x, train=train))
        x = Conv(6, 3, 2, name="conv2")(x)
        x = nn.tanh(self.last_norm(name="norm2")(x, train=train))
        return x.mean((1, 2)) * 8, {}


@pytest.fixture(autouse=True)
def smooth_backbone(monkeypatch):
    monkeypatch.setitem(BACKBONES, "smooth", SmoothNet)
    monkeypatch.setitem(BACKBONES, "resnet10", SmoothNet)


def make_lft(**changes):
    objective = make("protonet+lft(images=4;inner_rate=0.5)", arch="smooth")
    return dataclasses.replace(objective, **changes)


@pytest.fixture(scope="module")
def world():
    """An objective, its variables, a batch, and what it does at a step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, "smooth", SmoothNet)
        objective = make_lft()
        variables, batch = init(objective), batch_of(BATCH)

        @jax.jit
        def at(step):
            return gradients(objective, variables, batch, KEY, step)

        at(jnp.asarray(0))
        return objective, variables, batch, at


def test_the_hypergradient_is_that_of_finite_differences(world):
    objective, variables, batch, at = world
    cuts = np.cumsum(SIZES)
    parts = [
        batch._replace(images=batch.images[a:b], labels=batch.labels[a:b])
        for a, b in zip((0, *cuts), cuts, strict=False)
    ]
    plain = {n: p for n, p in variables["params"].items() if n == "backbone"}

    noise = variables["params"]["feature_wise"]

    def seen(params, noise):
        given = {"params": params, "feature_wise": {"backbone": noise}}
        return objective.inner.loss({**variables, **given}, parts[1], KEY)

    # The running statistics are no function of the noise, as in torch.
    stats = jax.jit(seen)(plain, noise)[1].batch_stats

    @jax.jit
    def unseen_after_a_step(noise):
        """By the definition, without any second derivative."""
        along = jax.grad(lambda params: seen(params, noise)[0])(plain)
        moved = jax.tree.map(lambda p, g: p - 0.5 * g, plain, along)
        then = {"params": moved, "batch_stats": stats}
        return objective.inner.loss(then, parts[2], KEY, train=False)[0]

    (_, aux), grads = at(jnp.asarray(0))
    assert aux.metrics["unseen_loss"] == pytest.approx(
        float(unseen_after_a_step(noise)), rel=1e-5
    )
    flat, unflatten = jax.flatten_util.ravel_pytree(noise)
    got, _ = jax.flatten_util.ravel_pytree(grads["feature_wise"])
    rng = np.random.default_rng(0)
    directions = [got / jnp.linalg.norm(got), *rng.normal(size=(3, flat.size))]
    for direction in directions:
        direction = direction / np.linalg.norm(direction)
        ahead, back = (
            float(unseen_after_a_step(unflatten(flat + h * direction)))
            for h in (1e-2, -1e-2)
        )
        want = (ahead - back) / 2e-2
        assert float(got @ direction) == pytest.approx(want, rel=0.02, abs=2e-4)
    assert np.linalg.norm(got) > 1e-2


def test_theta_follows_the_seen_and_the_faded_auxiliary_loss(world):
    objective, variables, batch, at = world

    def seen(params):
        return objective.loss({**variables, "params": params}, batch, KEY)[0]

    alone = jax.jit(jax.grad(seen))(variables["params"])
    first, later = (at(jnp.asarray(n * objective.stage))[1] for n in (0, 2))
    extra = [
        jax.tree.map(jnp.subtract, grads["backbone"], alone["backbone"])
        for grads in (first, later)
    ]
    assert_close(extra[1], jax.tree.map(lambda g: 0.81 * g, extra[0]), atol=1e-5)
    head = jax.tree.map(lambda g: 0.81 * g, first["auxiliary"])
    assert_close(later["auxiliary"], head, atol=1e-6)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(extra[0])) > 1e-3


def test_noise_and_weights_have_an_optimiser_each():
    # The first step of Adam is as long as its rate.
    objective = make_lft(noise_rate=0.125)
    optimiser = objective.optimiser(optax.adam(0.25))
    before, after = steps(objective, 1, optimiser=optimiser, labels=BATCH)
    params = [state.variables["params"] for state in (before, after)]
    moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), *params)
    noise = moved.pop("feature_wise")
    np.testing.assert_allclose(jax.tree.leaves(noise), 0.125, rtol=0.02)
    np.testing.assert_allclose(jax.tree.leaves(moved), 0.25, rtol=0.02)


@pytest.mark.devices8
def test_eight_devices_do_as_one():
    objective, labels = make_lft(), np.resize(BATCH, 24)
    objective = dataclasses.replace(
        objective, domains=objective.domains._replace(images=8)
    )
    one, several = (steps(objective, 1, devices=n, labels=labels)[-1] for n in (1, 8))
    # The noise moves by half a unit here: its gradient is some thousand times the
    # rounding of the losses that it is made of.
    assert_close(one.variables, several.variables, atol=3e-4)


def test_it_keeps_the_protocol_and_stands_last(world):
    objective, variables, _, _ = world
    assert isinstance(objective, Objective)
    assert (objective.batches, objective.method) == ("domains", "protonet")
    assert variables["params"].keys() == {"backbone", "feature_wise", "auxiliary"}
    with pytest.raises(UserError, match="put that one last"):
        make("protonet+lft+ata", arch="smooth")


def of_a_run(config, **changes):
    config.update(method="protonet+lft(images=4)", epochs=2, steps_per_epoch=2)
    config.episode.update(way=3, shot=1, query=3)
    config.update(changes)
    return config


@pytest.mark.slow
def test_a_run_on_one_source_takes_it_twice_and_resumes(make_config, tmp_path):
    config = of_a_run(make_config(), checkpoint_every=3)
    pretrain(config.to_dict(), tmp_path / "run")
    whole = load_model(tmp_path / "run" / "latest")
    lines = read_metrics(tmp_path / "run")
    assert {"unseen_loss", "auxiliary_loss", "accuracy"} <= lines[0].keys()
    for path in (tmp_path / "run/checkpoints/4/variables").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    pretrain(config.to_dict(), tmp_path / "run")
    again = load_model(tmp_path / "run" / "latest")
    jax.tree.map(np.testing.assert_array_equal, whole.variables, again.variables)


def test_missing_domains_are_told_before_anything_is_decoded(
    make_config, tmp_path, monkeypatch
):
    def decode(*args, **options):
        raise AssertionError("too early")

    monkeypatch.setattr("rdc_jax.pretrain.input_pipeline.pixel_cache", decode)
    for method, message in (
        ("protonet+lft(domains=tiny+nowhere)", "source domain 'nowhere' of protonet"),
        ("protonet+lft(redraw=often)", r"lft\(redraw\) is 'often'"),
    ):
        config = of_a_run(make_config(), method=method)
        with pytest.raises(UserError, match=message) as caught:
            pretrain(config.to_dict(), tmp_path / "run")
        assert "\n" not in str(caught.value)
    config = of_a_run(make_config(), steps_per_epoch=0)
    with pytest.raises(UserError, match=r"set --config\.steps_per_epoch"):
        pretrain(config.to_dict(), tmp_path / "run")


def test_the_step_lowers_for_every_accelerator():
    objective = make("protonet+lft(images=4)", arch="smooth", conv="xla")
    optimiser = objective.optimiser(optax.adam(1e-3))
    assert lowered(objective, optimiser, BATCH) == {"cuda", "tpu"}
