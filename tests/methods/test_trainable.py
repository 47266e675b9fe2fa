"""What trains is chosen by name, whole or as low-rank changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util

from rdc_jax.methods import Task, get_method
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.methods.trainable import divide, merge
from rdc_jax.models import create
from rdc_jax.models.model import wrap
from rdc_jax.runtime.errors import UserError

KEY = jax.random.key(0)
VIT = {"width": 8, "depth": 2, "heads": 2, "patch": 4, "grid": 4}


@pytest.fixture(scope="module")
def model():
    network = create("vit", **VIT)
    images = jnp.zeros((1, 16, 16, 3))
    return wrap(network, jax.jit(network.init)(jax.random.key(1), images))


@pytest.fixture(scope="module")
def params(model):
    return model.variables["params"]["backbone"]


def paths(tree):
    return {".".join(path) for path in traverse_util.flatten_dict(tree)}


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((), lambda path: True),
        (("none",), lambda path: False),
        (("block2",), lambda path: path.startswith("block2.")),
        (("*norm*",), lambda path: "norm" in path),
        (("*.attention", "norm"), lambda p: "attention" in p or p.startswith("norm.")),
        (("block1.mlp.up.bias",), lambda path: path == "block1.mlp.up.bias"),
    ],
)
def test_names_choose_what_trains(params, layers, expected):
    frozen, trained = divide(params, layers, 0, KEY)
    assert paths(trained) == {path for path in paths(params) if expected(path)}
    assert paths(frozen) == paths(params) - paths(trained)
    merged = merge(frozen, trained)
    jax.tree.map(np.testing.assert_array_equal, merged, params)


def test_unknown_names_are_told(params):
    with pytest.raises(UserError, match=r"has 'block9': .* block1, block2.* as in b"):
        divide(params, ("block9",), 0, KEY)


def test_low_rank_changes_begin_at_nothing(params):
    frozen, trained = divide(params, ("*.attention",), 2, KEY)
    assert {path.rpartition(".")[2] for path in paths(trained)} == {
        *("bias", "lora_down", "lora_up")
    }
    jax.tree.map(np.testing.assert_array_equal, merge(frozen, trained), params)
    factors = trained["block1"]["attention"]["qkv"]
    factors["lora_up"] = jnp.ones_like(factors["lora_up"])
    before = np.asarray(params["block1"]["attention"]["qkv"]["kernel"])
    after = merge(frozen, trained)["block1"]["attention"]["qkv"]["kernel"]
    change = np.asarray(after) - before
    want = np.asarray(factors["lora_down"]) @ np.ones((2, 24))
    np.testing.assert_allclose(change, want, atol=1e-6)


def test_a_vision_transformer_is_fitted_by_low_rank_changes(model, params):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, 18, 18, 3)).astype(np.uint8)
    labels = jnp.array([0, 0, 1, 1])
    task = Task(images[:4], labels, images[4:], num_classes=2, key=KEY)
    options = FinetuneOptions(learning_rate=1e-2, layers=("*.attention",), lora=2)
    method = get_method("rdc_ft(k=3;k2=2;dim=4)", finetune=options, image_size=16)
    state = jax.jit(method.init)(KEY, model, task)
    state = jax.jit(method.step)(state, task, KEY)
    fitted = method.adapted(state).variables["params"]["backbone"]
    changed = {
        ".".join(path)
        for path, value in traverse_util.flatten_dict(fitted).items()
        if np.abs(value - traverse_util.flatten_dict(params)[path]).max() > 0
    }
    assert changed and all("attention" in path for path in changed)
    assert "block1.attention.qkv.kernel" in changed
    assert jax.jit(method.classify)(state, task).shape == (8, 2)
