"""A run begins from any backbone, and its checkpoints say which one it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models import create, load_model, weights
from rdc_jax.pretrain.run import pretrain
from rdc_jax.runtime.errors import UserError

VIT = {"width": 8, "depth": 1, "heads": 2, "patch": 4, "grid": 4}
COLOURS = {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A small vision transformer with colours of its own."""
    network = create("vit", **VIT)
    init = jax.jit(network.init)(jax.random.key(0), jnp.zeros((1, 16, 16, 3)))
    variables = {"params": {"backbone": init["params"]}}
    path = tmp_path_factory.mktemp("start") / "vit.safetensors"
    noted = {**COLOURS, "edge": 16, "keep_aspect": True}
    weights.write(
        path,
        variables,
        {"arch": "vit", "arch_options": VIT, "preprocessing": noted, "image_size": 16},
    )
    return path


@pytest.fixture
def config_from(make_config):
    def config_from(path, arch):
        config = make_config()
        config.update(init_from=str(path), arch=arch, epochs=1, steps_per_epoch=1)
        config.validation.episodes = 0
        config.optimiser.learning_rate = 0.0
        return config.to_dict()

    return config_from


def test_a_run_begins_from_a_network_with_options(start, config_from, tmp_path):
    pretrain(config_from(start, "vit"), tmp_path)
    before, after = load_model(start), load_model(tmp_path)
    assert after.spec.arch_options == before.spec.arch_options
    # Colours stay the network's own; squares are those that the run was given.
    assert after.preprocessing.mean == (0.5, 0.5, 0.5)
    assert not after.preprocessing.keep_aspect
    images = np.random.default_rng(0).normal(size=(2, 16, 16, 3)).astype(np.float32)
    np.testing.assert_allclose(after(images), before(images), atol=1e-5)


def test_another_architecture_is_refused(start, config_from, tmp_path):
    with pytest.raises(UserError, match=r"is a vit, .* set --config\.arch=vit"):
        pretrain(config_from(start, "resnet10"), tmp_path)
