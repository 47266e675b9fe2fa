import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from training.tiny import SIZE, TinyNet

from rdc_jax.pretrain.objectives import CrossEntropy, ProtoNet
from rdc_jax.pretrain.state import create_state, evaluated, join, split
from rdc_jax.pretrain.step import Batch, augment, make_train_step, readings
from rdc_jax.runtime.processes import Layout, put_batch

KEY = jax.random.key(0)


def _layout(devices):
    mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
    return Layout(
        NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    )


def _batch(n=16):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, SIZE, SIZE, 3), dtype=np.uint8)
    return Batch(images, np.arange(n, dtype=np.int32) % 4, np.ones(n, np.float32))


def _steps(number, *, devices=1, average=False, optimiser=None):
    """The state after some steps, and the compiled step."""
    optimiser = optimiser or optax.sgd(0.1)
    objective = CrossEntropy(TinyNet(), 4)
    layout = _layout(devices)
    state = create_state(objective.init(KEY, SIZE), optimiser, average=average)
    state = jax.device_put(state, layout.replicated)
    step = make_train_step(objective, optimiser, size=SIZE, layout=layout, ema=0.9)
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


def test_the_window_sums_the_steps():
    state, _ = _steps(3)
    values = readings(state.window)
    assert int(state.window.steps) == 3
    assert values["loss"] == pytest.approx(float(state.window.loss) / 3)
    assert 0 <= values["accuracy"] <= 100
    assert values["grad_norm"] > 0


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
    assert evaluated(after) is after.average


@pytest.mark.parametrize("average", [False, True])
def test_join_undoes_split(average):
    state, _ = _steps(0, average=average, optimiser=optax.adam(1e-3))
    again = join(*split(state))
    assert jax.tree.structure(again) == jax.tree.structure(state)
    jax.tree.map(np.testing.assert_array_equal, again, state)


def test_augmentation_belongs_to_the_step_and_the_place():
    batch = _batch()
    same = batch._replace(images=np.repeat(batch.images[:1], 16, axis=0))
    crops = augment(KEY, jnp.int32(3), same, 8)
    assert crops.shape == (16, 8, 8, 3)
    assert not np.allclose(crops[0], crops[1])
    np.testing.assert_array_equal(crops, augment(KEY, jnp.int32(3), same, 8))
    assert not np.allclose(crops, augment(KEY, jnp.int32(4), same, 8))


def test_legacy_keys_augment_as_typed_ones_do():
    legacy = jax.random.PRNGKey(0)
    assert legacy.dtype == np.uint32
    crops = [augment(key, jnp.int32(3), _batch(), 8) for key in (KEY, legacy)]
    np.testing.assert_array_equal(*crops)


def _loss(objective, images, labels):
    variables = objective.init(KEY, SIZE)
    return objective.loss(
        variables["params"], variables["batch_stats"], images, labels
    ), variables


def test_label_smoothing_is_the_mean_with_uniform_targets():
    images, labels = (
        jnp.asarray(_batch().images / 255.0, jnp.float32),
        jnp.asarray(_batch().labels),
    )
    (loss, _), variables = _loss(CrossEntropy(TinyNet(), 4, 0.2), images, labels)
    (plain, _), _ = _loss(CrossEntropy(TinyNet(), 4), images, labels)
    features, _ = TinyNet().apply(
        {name: tree["backbone"] for name, tree in variables.items()},
        images,
        train=True,
    )
    head = variables["params"]["head"]
    log_p = jax.nn.log_softmax(features @ head["kernel"] + head["bias"])
    assert plain == pytest.approx(float(-log_p[np.arange(16), labels].mean()), abs=1e-5)
    assert loss == pytest.approx(float(0.8 * plain - 0.2 * log_p.mean()), abs=1e-5)


def test_protonet_is_the_softmax_of_squared_distances_to_class_means():
    images = jnp.asarray(_batch(12).images / 255.0, jnp.float32)
    labels = jnp.array([0, 0, 1, 1, 2, 2, 2, 0, 1, 1, 2, 0])
    objective = ProtoNet(TinyNet(), way=3, shot=2)
    (loss, outcome), variables = _loss(objective, images, labels)
    inner = {name: tree["backbone"] for name, tree in variables.items()}
    features = np.asarray(TinyNet().apply(inner, images, train=True)[0], np.float64)
    losses, right = [], []
    for feature, label in zip(features[6:], labels[6:], strict=True):
        squares = [
            np.sum((feature - features[2 * c : 2 * c + 2].mean(0)) ** 2)
            for c in range(3)
        ]
        losses.append(squares[label] + np.log(np.sum(np.exp(-np.array(squares)))))
        right.append(np.argmin(squares) == label)
    assert float(loss) == pytest.approx(np.mean(losses), abs=1e-5)
    assert float(outcome.accuracy) == pytest.approx(np.mean(right))


def test_protonet_has_finite_gradients_on_equal_images():
    images = jnp.zeros((12, SIZE, SIZE, 3))
    labels = jnp.array([0, 0, 1, 1, 2, 2, 2, 0, 1, 1, 2, 0])
    objective = ProtoNet(TinyNet(), way=3, shot=2)
    variables = objective.init(KEY, SIZE)
    grads = jax.grad(objective.loss, has_aux=True)(
        variables["params"], variables["batch_stats"], images, labels
    )[0]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))
