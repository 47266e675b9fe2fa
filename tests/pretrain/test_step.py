import jax
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tiny import SIZE, TinyNet

from rdc_jax.models import BACKBONES
from rdc_jax.models.conv import Conv
from rdc_jax.models.model import Spec
from rdc_jax.pretrain.objectives.cross_entropy import CrossEntropy
from rdc_jax.pretrain.step import (
    augment,
    create_state,
    join,
    make_train_step,
    mean_metrics,
    split,
)
from rdc_jax.runtime.processes import Layout, put_batch

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setitem(BACKBONES, "tiny", TinyNet)


def _layout(devices):
    mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
    return Layout(
        NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    )


def _batch(n=16):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, SIZE, SIZE, 3), dtype=np.uint8)
    labels = np.arange(n, dtype=np.int32) % 4
    return {"image": images, "label": labels, "aspect": np.ones(n, np.float32)}


def _steps(number, *, devices=1, average=False, optimiser=None):
    """The state after some steps, and the compiled step."""
    optimiser = optimiser or optax.sgd(0.1)
    head = ("num_classes", 4)
    objective = CrossEntropy(Spec("tiny", head="linear", head_options=(head,)))
    layout = _layout(devices)
    variables = objective.init(KEY, SIZE)
    state = create_state(objective, optimiser, variables, average=average)
    state = jax.device_put(state, layout.replicated)
    step = make_train_step(objective, optimiser, SIZE, layout=layout, ema=0.9)
    for _ in range(number):
        state, _ = step(KEY, state, put_batch(layout, _batch()))
    return state, step


@pytest.mark.parametrize("number", [2, pytest.param(8, marks=pytest.mark.devices8)])
def test_several_devices_equal_one(number):
    one, several = _steps(2)[0], _steps(2, devices=number)[0]
    assert len(several.step.sharding.device_set) == number
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), one, several)


def test_the_step_compiles_once():
    state, step = _steps(3)
    assert int(state.step) == 3
    assert step._cache_size() == 1


def test_the_sums_are_over_the_steps():
    state, _ = _steps(3)
    values = mean_metrics(state.sums)
    assert int(state.sums["steps"]) == 3
    assert values["loss"] == pytest.approx(float(state.sums["loss"]) / 3)
    assert 0 <= values["accuracy"] <= 100
    assert values["grad_norm"] > 0


def test_each_step_sees_crops_of_its_own():
    one, two = (
        float(_steps(number, optimiser=optax.sgd(0.0))[0].sums["loss"])
        for number in (1, 2)
    )
    assert abs(two - 2 * one) > 1e-3


def test_running_statistics_follow_the_batch():
    before, after = (_steps(number)[0].variables for number in (0, 1))
    first, images = before["params"]["backbone"]["conv"], _augment(0, size=SIZE)
    x = jax.jit(Conv(8, 3, 2).apply)({"params": first}, images)
    old, new = (v["batch_stats"]["backbone"]["norm"] for v in (before, after))
    want = 0.9 * old["mean"] + 0.1 * x.mean((0, 1, 2))
    np.testing.assert_allclose(new["mean"], want, atol=1e-5)
    want = 0.9 * old["var"] + 0.1 * np.var(x, (0, 1, 2), ddof=1)
    np.testing.assert_allclose(new["var"], want, atol=1e-5)


def test_the_average_follows_the_weights():
    before, after = _steps(1, average=True)[0], _steps(2, average=True)[0]
    rate = min(0.9, 2 / 11)
    expected = jax.tree.map(
        lambda a, v: rate * a + (1 - rate) * v, before.average, after.variables
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
        *(expected, after.average),
    )
    assert after.eval_variables is after.average


def test_checkpoints_keep_the_names_that_older_ones_have():
    _, rest = split(_steps(0, average=True)[0])
    assert rest.keys() == {"step", "opt_state", "window", "variables"}
    assert rest["window"].keys() == {"steps", "loss", "accuracy", "grad_norm"}


@pytest.mark.parametrize("average", [False, True])
def test_join_undoes_split(average):
    state, _ = _steps(0, average=average, optimiser=optax.adam(1e-3))
    again = join(*split(state))
    assert jax.tree.structure(again) == jax.tree.structure(state)
    jax.tree.map(np.testing.assert_array_equal, again, state)


def _augment(step, key=KEY, images=None, size=8):
    batch = _batch()
    images = batch["image"] if images is None else images
    return augment(jax.random.fold_in(key, step), images, batch["aspect"], size)


def test_augmentation_belongs_to_the_step_and_the_place():
    same = np.repeat(_batch()["image"][:1], 16, axis=0)
    crops = _augment(3, images=same)
    assert crops.shape == (16, 8, 8, 3)
    assert not np.allclose(crops[0], crops[1])
    np.testing.assert_array_equal(crops, _augment(3, images=same))
    assert not np.allclose(crops, _augment(4, images=same))


def test_legacy_keys_augment_as_typed_ones_do():
    legacy = jax.random.PRNGKey(0)
    assert legacy.dtype == np.uint32
    np.testing.assert_array_equal(_augment(3), _augment(3, legacy))
