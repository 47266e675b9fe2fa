"""The networks: sizes, dtypes, and a training step that equals torch's."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rdc_jax import models
from rdc_jax.models.heads import Classifier
from rdc_jax.models.resnet import BasicBlock, ResNet
from rdc_jax.runtime.errors import UserError

pytestmark = pytest.mark.usefixtures("optimised")

# It takes long to compile; what the programs use is always tested.
CONVS = [pytest.param("xla", marks=pytest.mark.slow), "auto"]


def count(tree):
    return sum(x.size for x in jax.tree.leaves(tree))


@pytest.mark.parametrize(
    ("name", "parameters", "features"),
    [
        ("resnet10", 4_905_792, 512),
        ("resnet12", 12_424_320, 640),
        ("resnet18", 11_176_512, 512),
    ],
)
def test_parameters_and_features(name, parameters, features):
    model = models.create(name)
    for side in (32, 84, 224):
        images = jax.ShapeDtypeStruct((2, side, side, 3), jnp.float32)
        (out, named), variables = jax.eval_shape(
            lambda x: model.init_with_output(jax.random.key(0), x), images
        )
        assert out.shape == (2, features) and named["features"].shape == out.shape
        assert {"block1", "block2", "block3", "block4"} <= named.keys()
        assert count(variables["params"]) == parameters


def test_half_precision_computes_in_it_and_keeps_float32_weights():
    model = models.create("resnet10", dtype="bfloat16")
    images = jax.ShapeDtypeStruct((2, 32, 32, 3), jnp.float32)
    (out, named), variables = jax.eval_shape(
        lambda x: model.init_with_output(jax.random.key(0), x, train=True), images
    )
    assert named["block4"].dtype == jnp.bfloat16 and out.dtype == jnp.float32
    assert {x.dtype for x in jax.tree.leaves(variables)} == {jnp.dtype("float32")}


@pytest.mark.parametrize("conv", CONVS)
def test_half_precision_gradients_point_where_float32s_do(conv):
    images = jax.random.normal(jax.random.key(0), (6, 40, 40, 3))

    def gradient(dtype):
        blocks = functools.partial(BasicBlock, 16), functools.partial(BasicBlock, 8, 2)
        model = ResNet(blocks, dtype=jnp.dtype(dtype), conv=conv)
        variables = model.init(jax.random.key(1), images)

        def loss(params):
            inner = {**variables, "params": params}
            return jnp.square(model.apply(inner, images, train=True)[0]).mean()

        return jax.jit(jax.grad(loss))(variables["params"])

    half, full = gradient("bfloat16"), gradient("float32")
    assert {x.dtype for x in jax.tree.leaves(half)} == {jnp.dtype("float32")}
    for a, b in zip(jax.tree.leaves(half), jax.tree.leaves(full), strict=True):
        assert (a * b).sum() > 0.98 * jnp.linalg.norm(a) * jnp.linalg.norm(b)
        np.testing.assert_allclose(jnp.linalg.norm(a), jnp.linalg.norm(b), rtol=0.1)


def traced_gradient(model, batch=16):
    """The program of a training step, as text; nothing is computed."""
    images = jax.ShapeDtypeStruct((batch, 32, 32, 3), jnp.float32)
    variables = jax.eval_shape(model.init, jax.random.key(0), images)

    def loss(params, stats, images):
        inner = {"params": params, "batch_stats": stats}
        return model.apply(inner, images, train=True)[0].sum()

    arguments = variables["params"], variables["batch_stats"], images
    return str(jax.make_jaxpr(jax.grad(loss))(*arguments))


def test_auto_is_xlas_convolution_and_no_loop_on_accelerators(monkeypatch):
    on_cpu = traced_gradient(models.create("resnet10"))
    assert "dot_general" in on_cpu and "scan" in on_cpu
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    elsewhere = traced_gradient(models.create("resnet10"))
    assert "conv_general_dilated" in elsewhere
    assert "dot_general" not in elsewhere and "scan" not in elsewhere


def test_initial_weights_have_the_lineages_scale():
    model = models.create("resnet10", conv="xla")
    params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))["params"]
    kernel = params["block4"]["conv2"]["kernel"]
    np.testing.assert_allclose(kernel.std(), np.sqrt(2 / (9 * 512)), rtol=0.01)
    assert (params["block4"]["norm2"]["scale"] == 1).all()


def test_unknown_names_are_told():
    with pytest.raises(UserError, match="known are resnet10, resnet12, resnet18"):
        models.create("resnet51")
    with pytest.raises(UserError, match="unknown convolution 'fft'"):
        models.create("resnet10", conv="fft")


@pytest.mark.slow
@pytest.mark.parametrize("conv", CONVS)
def test_one_training_step_equals_torchs(conv, tmp_path):
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    from models.torch_reference import Classifier as TorchClassifier

    from rdc_jax.models import torch_format

    torch.manual_seed(0)
    network = TorchClassifier(5).train()
    torch.save({"state": network.state_dict()}, tmp_path / "before.tar")
    images = np.random.default_rng(0).standard_normal((8, 32, 32, 3), np.float32)
    labels = np.arange(8) % 5

    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    loss = torch.nn.functional.cross_entropy(
        network(torch.from_numpy(images.transpose(0, 3, 1, 2).copy())),
        torch.from_numpy(labels),
    )
    loss.backward()
    gradients = {
        name: parameter.grad.clone() for name, parameter in network.named_parameters()
    }
    optimiser.step()
    torch.save({"state": network.state_dict()}, tmp_path / "after.tar")
    torch.save(
        {"state": {**network.state_dict(), **gradients}}, tmp_path / "gradients.tar"
    )

    variables, _ = torch_format.read(tmp_path / "before.tar")
    model = Classifier(models.create("resnet10", conv=conv), 5)

    @jax.jit
    def step(variables):
        def objective(params):
            (logits, _), updates = model.apply(
                {**variables, "params": params},
                jnp.asarray(images),
                train=True,
                mutable=["batch_stats"],
            )
            each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return each.mean(), updates["batch_stats"]

        params = variables["params"]
        (loss, stats), grads = jax.value_and_grad(objective, has_aux=True)(params)
        adam = optax.adam(1e-3)
        updates, _ = adam.update(grads, adam.init(params))
        return loss, grads, stats, optax.apply_updates(params, updates)

    our_loss, grads, stats, params = step(variables)
    np.testing.assert_allclose(our_loss, loss.item(), rtol=1e-5)
    after, _ = torch_format.read(tmp_path / "after.tar")
    want, _ = torch_format.read(tmp_path / "gradients.tar")
    scale = max(float(jnp.abs(g).max()) for g in jax.tree.leaves(grads))

    def close(got, want, atol):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=atol),
            got,
            want,
        )

    close(grads, want["params"], 2e-4 * scale)
    close(stats, after["batch_stats"], 1e-5)
    # Adam's first step is the gradient's sign: only where that is clear can the
    # weights be compared closely.
    clear = jax.tree.map(lambda g: np.abs(g) > 1e-3 * scale, want["params"])
    jax.tree.map(
        lambda a, b, m: np.testing.assert_allclose(a[m], b[m], atol=1e-5),
        jax.tree.map(np.asarray, params),
        after["params"],
        clear,
    )
