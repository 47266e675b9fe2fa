"""BSR and NSAE: their objectives and the tuning after them, against PyTorch."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from rdc_jax import methods
from rdc_jax.data.transforms import between_0_and_1, normalize
from rdc_jax.data.transforms import test_batch as transformed
from rdc_jax.models import BACKBONES
from rdc_jax.models.decoders import Deconvolutions
from rdc_jax.models.load import load_model
from rdc_jax.models.model import Model, Spec
from rdc_jax.pretrain.objectives import Batch
from rdc_jax.pretrain.objectives.bsr import BSR
from rdc_jax.pretrain.objectives.nsae import NSAE
from rdc_jax.runtime.errors import UserError

SPEC = Spec("resnet10", head="linear", head_options=(("num_classes", 4),))
KEY = jax.random.key(1)
DECODED = dataclasses.replace(
    SPEC, decoder="deconvolutions", decoder_options=(("size", tiny.SIZE),)
)


@pytest.fixture(autouse=True)
def tiny_network(monkeypatch):
    """The tiny network in the place of the real one."""
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    images = normalize(jnp.asarray(rng.uniform(0, 255, (6, tiny.SIZE, tiny.SIZE, 3))))
    return Batch(images.astype(jnp.float32), jnp.asarray([0, 1, 2, 3, 0, 1]))


def numpy_of(tree):
    return jax.tree.map(np.asarray, tree)


def twins(variables):
    """Network, head and decoder in torch."""
    pytest.importorskip("torch", reason="needs the extra [torch]")
    from methods import torch_finetune, torch_tuned

    network = {kind: tree["backbone"] for kind, tree in variables.items()}
    params = numpy_of(variables["params"])
    head = torch_tuned.linear(params["head"])
    decoder = None
    if "decoder" in params:
        decoder = torch_tuned.decoder(params["decoder"], tiny.SIZE)
    return torch_finetune.TinyNet(network).train(), head, decoder


def chw(images):
    import torch

    return torch.from_numpy(np.array(images).transpose(0, 3, 1, 2).copy())


def test_bsr_adds_the_squared_singular_values(batch):
    objective = BSR(SPEC, weight=0.1)
    variables = objective.init(jax.random.key(0), tiny.SIZE)
    value, aux = jax.jit(objective.loss)(variables, batch, jax.random.key(1))
    net, head, _ = twins(variables)
    import torch

    feat = net(chw(batch.images))
    labels = torch.from_numpy(np.array(batch.labels)).long()
    expected = torch.nn.functional.cross_entropy(head(feat), labels)
    expected = expected + 0.1 * torch.linalg.svdvals(feat).square().sum()
    assert float(value) == pytest.approx(expected.item(), rel=1e-4)
    np.testing.assert_allclose(
        aux.batch_stats["backbone"]["norm"]["var"], net.norm.running_var, rtol=1e-4
    )


def test_nsae_s_three_losses_and_gradients_are_torch_s(batch):
    objective = NSAE(DECODED, reconstruction=0.7, noise=0.5)
    variables = objective.init(jax.random.key(0), tiny.SIZE)

    def loss(params):
        return objective.loss({**variables, "params": params}, batch, KEY)

    (value, aux), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(
        variables["params"]
    )
    net, head, decoder = twins(variables)
    import torch
    from torch.nn import functional as F

    feat = net(chw(batch.images))
    made = decoder(feat)
    labels = torch.from_numpy(np.array(batch.labels)).long()
    target = chw(between_0_and_1(batch.images))
    mean, std = (chw(np.asarray(x, np.float32)[None, None, None]) for x in _imagenet())
    again = head(net((made - mean) / std))
    expected = F.cross_entropy(head(feat), labels) + 0.7 * F.mse_loss(made, target)
    expected = expected + 0.5 * F.cross_entropy(again, labels)
    expected.backward()
    assert float(value) == pytest.approx(expected.item(), rel=1e-4)
    for mine, theirs in (
        (grads["backbone"]["conv"]["kernel"], net.conv.weight.grad.permute(2, 3, 1, 0)),
        (grads["head"]["kernel"], head.weight.grad.T),
        (grads["decoder"]["hidden"]["kernel"], decoder.hidden.weight.grad.T),
        (grads["decoder"]["bias"], decoder.image.bias.grad),
    ):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)
    # Both passes leave their statistics.
    np.testing.assert_allclose(
        aux.batch_stats["backbone"]["norm"]["mean"], net.norm.running_mean, atol=1e-5
    )


def _imagenet():
    from rdc_jax.core import imagenet

    return imagenet.MEAN, imagenet.STD


@pytest.mark.parametrize("size", [16, 20])
def test_the_decoder_is_torch_s_whatever_the_size(size):
    pytest.importorskip("torch", reason="needs the extra [torch]")
    import torch
    from methods import torch_tuned

    decoder = Deconvolutions(size)
    feat_bd = jax.random.normal(jax.random.key(1), (2, 8))
    variables = jax.jit(decoder.init)(jax.random.key(0), feat_bd)
    got = jax.jit(decoder.apply)(variables, feat_bd)
    assert got.shape == (2, size, size, 3)
    theirs = torch_tuned.decoder(numpy_of(variables["params"]), size)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(np.array(feat_bd)))
    np.testing.assert_allclose(got, expected.permute(0, 2, 3, 1), atol=1e-5)


def make_task():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (9, 18, 18, 3), dtype=np.uint8)
    return methods.Task(
        jnp.asarray(images[:6]),
        jnp.repeat(jnp.arange(3), 2),
        jnp.asarray(images[6:]),
        num_classes=3,
        key=jax.random.key(1),
    )


def test_nsae_reconstructs_then_classifies_as_in_torch():
    objective = NSAE(DECODED, reconstruction=1.0, noise=1.0)
    variables = objective.init(jax.random.key(0), tiny.SIZE)
    model = Model(DECODED, variables, {"method": "nsae"})
    text = "nsae(epochs=1;reconstruct_epochs=1)"
    method = methods.get_method(text, image_size=tiny.SIZE)
    task = make_task()
    method.check(task, model)
    net, _, decoder = twins(variables)
    import torch
    from methods import torch_tuned

    images = np.asarray(transformed(task.support, tiny.SIZE))
    labels = torch.repeat_interleave(torch.arange(3), 2)
    first, second = method.phases
    key = jax.random.key(2)
    order = np.asarray(jax.random.permutation(jax.random.split(key)[0], 6))

    state = jax.jit(first.init)(key, model, task)
    state = jax.jit(first.step)(state, task, key)
    both = [*net.parameters(), *decoder.parameters()]
    sgd = torch.optim.SGD(both, lr=1e-3, momentum=0.9, weight_decay=5e-4)
    for rows in (order[:4], order[4:]):
        target = chw(between_0_and_1(jnp.asarray(images[rows])))
        sgd.zero_grad()
        torch.nn.functional.mse_loss(decoder(net(chw(images[rows]))), target).backward()
        sgd.step()
    made = first.adapted(state)
    trained = made.variables["params"]
    np.testing.assert_allclose(
        trained["decoder"]["hidden"]["kernel"],
        decoder.hidden.weight.detach().T,
        atol=1e-5,
    )

    state = jax.jit(second.init)(key, made, task)
    assert set(state.params["network"]) == {"backbone"}
    head = torch_tuned.linear(numpy_of(state.params["head"]))
    state = jax.jit(second.step)(state, task, key)
    sgd = torch.optim.SGD(
        [*net.parameters(), *head.parameters()],
        lr=0.01,
        momentum=0.9,
        weight_decay=1e-3,
    )
    epochs = [(chw(images), labels, order)]
    torch_tuned.classify_epochs(net, head, [sgd], epochs)
    np.testing.assert_allclose(
        state.params["network"]["backbone"]["conv"]["kernel"],
        net.conv.weight.detach().permute(2, 3, 1, 0),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        state.model.variables["batch_stats"]["backbone"]["norm"]["var"],
        net.norm.running_var,
        atol=1e-5,
    )


def test_models_that_cannot_serve_are_refused():
    nsae = methods.get_method("nsae", image_size=tiny.SIZE)
    bsr = methods.get_method("bsr", image_size=tiny.SIZE)
    plain = Model(SPEC, {}, {"method": "cross_entropy"})
    for method in (nsae, bsr):
        with pytest.raises(UserError, match=f"a model trained by {method.name}"):
            method.check(make_task(), plain)
    bsr.check(make_task(), Model(SPEC, {}, {"method": "bsr(weight=0.01)"}))
    with pytest.raises(UserError, match="a model with a decoder"):
        nsae.check(make_task(), Model(SPEC, {}, {"method": "nsae"}))
    larger = methods.get_method("nsae", image_size=32)
    with pytest.raises(UserError, match="decodes images of 16 px"):
        larger.check(make_task(), Model(DECODED, {}, {"method": "nsae"}))


def test_a_decoder_is_kept_in_the_checkpoint(tmp_path):
    from rdc_jax.configs import pretrain as pretrain_config
    from rdc_jax.pretrain.run import pretrain

    tiny.write_images(tmp_path)
    config = pretrain_config.get_config("nsae,test").unlock()
    config.update(
        source="tiny",
        data_dir=str(tmp_path),
        image_size=tiny.SIZE,
        stored_size=tiny.SIZE,
        epochs=1,
        steps_per_epoch=2,
    )
    config.validation.update(way=3, shots="1", episodes=5)
    pretrain(config.to_dict(), tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert model.spec.decoder == "deconvolutions"
    images = model.decode(model.embed(jnp.zeros((2, tiny.SIZE, tiny.SIZE, 3))))
    assert images.shape == (2, tiny.SIZE, tiny.SIZE, 3)
    assert float(images.min()) >= 0 and float(images.max()) <= 1
    method = methods.get_method("nsae", image_size=tiny.SIZE)
    method.check(make_task(), model)
    config.phases = "8:0.5"
    with pytest.raises(UserError, match=r"set --config\.phases=''"):
        pretrain(config.to_dict(), tmp_path / "other")
