"""Feature-wise transformation around an objective."""

import jax
import numpy as np
import pytest
from pretrain.meta import assert_equal, batch_of, init, loss_of, make, steps
from tiny import TinyNet, TinyResNet

from rdc_jax.models import BACKBONES, load_model
from rdc_jax.pretrain.run import pretrain
from rdc_jax.runtime.errors import UserError


@pytest.fixture(autouse=True)
def tiny_backbones(monkeypatch):
    monkeypatch.setitem(BACKBONES, "tiny_resnet", TinyResNet)
    monkeypatch.setitem(BACKBONES, "tiny", TinyNet)


def test_without_training_it_is_the_plain_objective_bit_for_bit():
    plain, noisy, batch = make("protonet"), make("protonet+ft"), batch_of()
    variables = init(noisy)
    for kind, tree in init(plain).items():
        assert_equal(variables[kind], tree)
    want = loss_of(plain, init(plain), batch, train=False)
    assert_equal(loss_of(noisy, variables, batch, train=False), want)
    assert (noisy.method, noisy.spec.arch) == ("protonet", "tiny_resnet")


def test_in_training_the_noise_is_of_the_key_and_of_the_weights_it_was_given():
    batch = batch_of()
    weak, strong = (
        make(f"protonet+ft(scale={n};shift={n};shortcuts=False)") for n in (-1, 1)
    )
    losses = [
        loss_of(objective, init(objective), batch, jax.random.key(i))[0]
        for objective in (weak, strong)
        for i in range(2)
    ]
    plain, _ = loss_of(make("protonet"), init(weak), batch)
    np.testing.assert_allclose(losses[:2], plain, rtol=1e-6)
    assert len({float(loss) for loss in losses[2:]} - {float(plain)}) == 2


def test_the_optimiser_does_not_move_it():
    before, after = steps(make("protonet+ft"), 1)
    assert_equal(after.variables["feature_wise"], before.variables["feature_wise"])
    params = [state.variables["params"]["backbone"] for state in (before, after)]
    kernels = [tree["block1"]["conv1"]["kernel"] for tree in params]
    assert np.any(kernels[0] != kernels[1])


def test_a_checkpoint_is_loaded_as_the_plain_network(
    make_config, tmp_path, monkeypatch
):
    monkeypatch.setitem(BACKBONES, "resnet10", TinyResNet)
    config = make_config()
    config.update(method="protonet+ft", epochs=1, steps_per_epoch=2)
    config.episode.update(way=4, shot=1, query=3)
    pretrain(config.to_dict(), tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert model.metadata["method"] == "protonet+ft"
    assert model.metadata["validated_by"] == "protonet"
    assert "feature_wise" in model.variables
    plain = {kind: model.variables[kind] for kind in ("params", "batch_stats")}
    images = batch_of().images
    assert_equal(model(images), model.replace(variables=plain)(images))


def test_a_network_without_residual_blocks_is_refused():
    with pytest.raises(UserError, match=r"'protonet\+ft' .* which tiny has not"):
        make("protonet+ft", arch="tiny")
