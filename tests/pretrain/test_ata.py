"""Adversarial task augmentation around an objective."""

import compiling
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from pretrain.meta import (
    KEY,
    LABELS,
    assert_close,
    assert_equal,
    batch_of,
    init,
    loss_of,
    lowered,
    make,
    steps,
)
from tiny import SIZE, TinyNet, TinyResNet

from rdc_jax.models import BACKBONES
from rdc_jax.pretrain.objectives import Objective
from rdc_jax.pretrain.objectives.ata import random_filter
from rdc_jax.runtime.errors import UserError

SCALED = (SIZE / 224) ** 2


@pytest.fixture(autouse=True)
def tiny_backbones(monkeypatch):
    monkeypatch.setitem(BACKBONES, "tiny_resnet", TinyResNet)
    monkeypatch.setitem(BACKBONES, "tiny", TinyNet)


def test_without_ascent_and_filter_it_is_the_plain_objective():
    batch, plain = batch_of(), make("protonet+ft")
    same = make("protonet+ft+ata(step_size=0;keep=1;steps=1)")
    variables = init(same)
    loss, aux = loss_of(same, variables, batch)
    want, want_aux = loss_of(plain, variables, batch)
    assert loss == want
    assert_equal(aux.batch_stats, want_aux.batch_stats)
    assert aux.metrics["moved"] == 0
    assert isinstance(same, Objective)
    assert set(aux.metrics) == set(same.metrics)


def torch_task(variables, images, rate, ascents):
    """The tiny network, ProtoNet and the ascent once more, by torch."""
    torch = pytest.importorskip("torch")
    nn = torch.nn.functional
    inner = jax.tree.map(
        lambda x: torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=True),
        {kind: tree["backbone"] for kind, tree in variables.items()},
    )
    params, stats = inner["params"], inner["batch_stats"]["norm"]
    labels = torch.tensor(LABELS.astype(np.int64))

    def loss_of(images, train):
        x = nn.conv2d(images, params["conv"]["kernel"].permute(3, 2, 0, 1), None, 2, 1)
        mean, var = stats["mean"].detach().clone(), stats["var"].detach().clone()
        norm = params["norm"]
        x = nn.batch_norm(x, mean, var, norm["scale"], norm["bias"], train, 0.1, 1e-5)
        x = torch.relu(x).mean((2, 3)) @ params["dense"]["kernel"]
        x = x + params["dense"]["bias"]
        means = torch.stack([x[:2][labels[:2] == c].mean(0) for c in range(2)])
        logits = -((x[2:, None] - means[None]) ** 2).sum(-1)
        return nn.cross_entropy(logits, labels[2:])

    moved = torch.tensor(np.asarray(images, np.float64).transpose(0, 3, 1, 2))
    for _ in range(ascents):
        moved.requires_grad_()
        (ascent,) = torch.autograd.grad(loss_of(moved, False), moved)
        moved = (moved + rate * ascent).detach()
    loss = loss_of(moved, True)
    loss.backward()
    grads = jax.tree.map(lambda x: x.grad.numpy(), params)
    return float(loss.detach()), grads, moved.numpy().transpose(0, 2, 3, 1)


def test_loss_and_gradient_are_those_of_plain_torch():
    objective = make("protonet+ata(step_size=20000;keep=1;steps=3)", arch="tiny")
    batch, variables = batch_of(), init(objective)
    # Running statistics unlike the batch's: the ascent must go by them.
    stats = {"mean": jnp.linspace(-1, 1, 8), "var": jnp.linspace(0.5, 2, 8)}
    variables["batch_stats"] = {"backbone": {"norm": stats}}

    def of_params(params):
        return objective.loss({**variables, "params": params}, batch, KEY)

    of_both = jax.jit(jax.value_and_grad(of_params, has_aux=True))
    with compiling.fully():
        (loss, aux), grads = of_both(variables["params"])
    want, want_grads, images = torch_task(variables, batch.images, 20000 * SCALED, 3)
    assert loss == pytest.approx(want, rel=1e-4)
    assert_close(grads["backbone"], want_grads, rtol=2e-3, atol=1e-5)
    rms = np.sqrt(np.mean((images - np.asarray(batch.images)) ** 2))
    assert rms > 0.1
    assert aux.metrics["moved"] == pytest.approx(rms, rel=1e-4)


def test_the_ascent_raises_the_loss_and_itself_has_no_gradient():
    objective, batch = make("protonet+ata(step_size=300;keep=1)"), batch_of()
    variables = init(objective)

    def of_images(images):
        moved = batch._replace(images=images)
        return objective.loss(variables, moved, KEY, train=False)

    (loss, aux), through = jax.jit(jax.value_and_grad(of_images, has_aux=True))(
        batch.images
    )
    assert loss > aux.metrics["start_loss"] * 1.01
    assert not np.any(through)


def test_the_step_is_scaled_with_the_size_of_the_images():
    batch = batch_of()
    scaled = make("protonet+ata(step_size=800;keep=1;steps=1)")
    plain = make(f"protonet+ata(step_size={800 * SCALED};keep=1;steps=1;scaled=False)")
    moved = [
        float(loss_of(objective, init(objective), batch)[1].metrics["moved"])
        for objective in (scaled, plain)
    ]
    assert moved[0] > 0
    assert moved[0] == pytest.approx(moved[1], rel=1e-5)


def test_a_random_filter_is_one_convolution_of_a_random_size_for_all_images():
    n, c = 33, 16  # A single lit pixel shows the kernel, upside down.
    images = jnp.zeros((2, n, n, 3)).at[:, c, c, :].set(1.0)
    draw = jax.jit(jax.vmap(lambda key: random_filter(key, images, keep=0.0)))
    out = np.asarray(draw(jax.random.split(KEY, 300)))
    np.testing.assert_allclose(out[:, 0], out[:, 1], atol=1e-6)
    lit = np.abs(out[:, 0]).max(-1) > 1e-7
    sizes = lit.any(1).sum(-1)
    np.testing.assert_array_equal(lit.any(2).sum(-1), sizes)
    counts = dict(zip(*np.unique(sizes, return_counts=True), strict=True))
    assert counts.keys() == {1, 3, 5, 7, 11, 15}
    assert min(counts.values()) > 25
    # A sum over 3 k^2 inputs of variance 1 / (3 k^2) keeps the scale of white noise.
    for size in counts:
        energy = (out[sizes == size, 0] ** 2).sum((1, 2, 3)).mean() / 3
        assert energy == pytest.approx(1.0, rel=0.35)


def test_images_are_kept_as_often_as_it_says():
    images = batch_of().images
    draw = jax.jit(jax.vmap(lambda key: random_filter(key, images, keep=0.25)))
    kept = np.all(draw(jax.random.split(KEY, 400)) == images, axis=(1, 2, 3, 4))
    assert kept.mean() == pytest.approx(0.25, abs=0.07)


@pytest.mark.devices8
def test_eight_devices_do_as_one():
    objective = make("protonet+ft+ata(steps=1)")
    one, several = (steps(objective, 2, devices=n)[-1] for n in (1, 8))
    assert len(several.step.sharding.device_set) == 8
    assert_close(one, several, atol=2e-5)


def test_gradients_are_finite_on_equal_images():
    objective, batch = make("protonet+ft+ata(steps=1)"), batch_of()
    batch = batch._replace(images=jnp.zeros_like(batch.images))
    grads = jax.jit(jax.grad(lambda v: objective.loss(v, batch, KEY)[0]))(
        {**init(objective)}
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads["params"]))


def test_the_step_lowers_for_every_accelerator():
    objective = make("protonet+ft+ata(steps=1)", conv="xla")
    assert lowered(objective, optax.adam(1e-3)) == {"cuda", "tpu"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("protonet+ata(steps=-1)", r"ata\(steps\) is -1"),
        ("protonet+ata(keep=1.5)", r"ata\(keep=1.5\): give a share from 0 to 1"),
        ("protonet+ata(prob=.5)", "its parameters are inner, steps, step_size, keep"),
    ],
)
def test_impossible_parameters_are_told_in_one_line(text, message):
    with pytest.raises(UserError, match=message):
        make(text)


@pytest.mark.parametrize("inner", ["gnn", "tpn", "relation", "matching", "gnn+lrp"])
def test_it_wraps_every_objective_on_tasks(inner):
    objective = make(f"{inner}+ata(steps=1)")
    batch = batch_of()

    def step(key):
        variables = objective.init(key, SIZE)

        def of_params(params):
            return objective.loss({**variables, "params": params}, batch, key)

        (loss, aux), grads = jax.value_and_grad(of_params, has_aux=True)(
            variables["params"]
        )
        return loss, variables["batch_stats"], aux.batch_stats, aux.metrics, grads

    # Traced, not run: each is tested alone, and what wraps them with one that is small.
    loss, before, after, metrics, grads = jax.eval_shape(step, KEY)
    assert loss.shape == ()
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert {"moved", "start_loss"} <= metrics.keys()
    assert grads.keys() >= {"backbone", "head"}
