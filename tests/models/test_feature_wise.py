"""Feature-wise transformation, and with it a norm of one's own in every block."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax import models
from rdc_jax.models.feature_wise import FeatureWise
from rdc_jax.models.heads import Classifier
from rdc_jax.models.model import wrap
from rdc_jax.models.resnet import BasicBlock, ResNet

KEY = jax.random.key(3)
IMAGES = jax.random.normal(jax.random.key(0), (3, 16, 16, 3))
BLOCKS = (functools.partial(BasicBlock, 4), functools.partial(BasicBlock, 8, 2))
TRAIN = {"train": True, "mutable": ["batch_stats"]}


def networks(norm=FeatureWise):
    """A plain network, the same with noise, and the variables of the latter."""
    plain = ResNet(BLOCKS)
    noisy = plain.clone(last_norm=norm)
    return plain, noisy, jax.jit(noisy.init)(KEY, IMAGES)


def test_it_is_the_plain_network_at_test_bit_for_bit():
    plain, noisy, variables = networks()
    assert variables.keys() == {"params", "batch_stats", "feature_wise"}
    bare = jax.jit(plain.init)(KEY, IMAGES)
    for kind, tree in bare.items():
        jax.tree.map(np.testing.assert_array_equal, variables[kind], tree)
    want, _ = jax.jit(plain.apply)(bare, IMAGES)
    # A checkpoint of it is one of the plain network, which leaves the rest alone.
    for network in (noisy, plain):
        got, _ = jax.jit(network.apply)(variables, IMAGES)
        np.testing.assert_array_equal(got, want)


def test_it_is_batch_norm_and_then_one_random_line_a_channel():
    x = np.asarray(jax.random.normal(KEY, (3, 5, 5, 4))) * 2 + 1
    norm = FeatureWise(scale=0.7, shift=0.02)
    variables = norm.init(KEY, jnp.asarray(x), train=False)
    y, _ = norm.apply(variables, jnp.asarray(x), **TRAIN, rngs={"noise": KEY})
    normal = (x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-5)
    noise = np.asarray(norm.apply({}, rngs={"noise": KEY}, method=draws))

    def softplus(weight):
        return np.log(1 + np.exp(100 * weight)) / 100

    want = (1 + noise[0] * softplus(0.7)) * normal + noise[1] * softplus(0.02)
    np.testing.assert_allclose(y, want, atol=1e-4)
    assert softplus(0.02) == pytest.approx(0.0213, abs=1e-4)  # Not quite the weight.


def draws(module):
    return jax.random.normal(module.make_rng("noise"), (2, 4))


def test_noise_is_of_the_key_and_one_draw_for_all_images_and_places():
    x = jnp.zeros((3, 5, 5, 4))
    norm = FeatureWise()
    variables = norm.init(KEY, x, train=False)
    y, _ = norm.apply(variables, x, **TRAIN, rngs={"noise": KEY})
    assert len(np.unique(y)) == 4
    again, _ = norm.apply(variables, x, **TRAIN, rngs={"noise": KEY})
    np.testing.assert_array_equal(again, y)
    other, _ = norm.apply(variables, x, **TRAIN, rngs={"noise": jax.random.key(4)})
    assert (other != y).all()


@pytest.mark.parametrize("shortcuts", [True, False])
def test_it_follows_a_block_s_last_norm_and_perhaps_its_shortcut_s(shortcuts):
    _, noisy, variables = networks(functools.partial(FeatureWise, shortcuts=shortcuts))
    apply = functools.partial(
        noisy.apply, train=True, mutable=["batch_stats", "intermediates"]
    )
    catch = {"rngs": {"noise": KEY}, "capture_intermediates": True}
    _, state = jax.jit(functools.partial(apply, **catch))(variables, IMAGES)
    block = state["intermediates"]["block2"]
    spread = {
        name: float(np.std(block[name]["__call__"][-1].mean((0, 1, 2))))
        for name in ("norm1", "norm2", "shortcut_norm")
    }
    assert spread["norm1"] < 1e-5 < 0.1 < spread["norm2"]
    assert (spread["shortcut_norm"] > 0.1) == shortcuts
    sites = {"norm2", "shortcut_norm"} if shortcuts else {"norm2"}
    assert variables["feature_wise"]["block2"].keys() == sites


def test_resnet10_has_as_many_weights_as_the_code_and_the_text_say():
    for shortcuts, count in ((True, 3712), (False, 1920)):
        norm = functools.partial(FeatureWise, shortcuts=shortcuts)
        network = models.create("resnet10", last_norm=norm)
        shapes = jax.eval_shape(network.init, KEY, IMAGES)["feature_wise"]
        assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == count


def test_the_key_reaches_it_through_models_and_classifiers():
    _, noisy, variables = networks()
    model = wrap(noisy, variables)
    apply = jax.jit(lambda key: model.apply(IMAGES, train=True, key=key)[0])
    assert not np.array_equal(apply(KEY), apply(jax.random.key(4)))
    classifier = Classifier(noisy, 5)
    variables = jax.jit(classifier.init)(KEY, IMAGES)
    classify = jax.jit(
        lambda key: classifier.apply(variables, IMAGES, **TRAIN, rngs={"noise": key})
    )
    logits = [classify(key)[0][0] for key in (KEY, jax.random.key(4))]
    assert not np.array_equal(*logits)


def test_every_residual_network_takes_a_norm():
    for name in ("resnet10", "resnet12", "resnet18"):
        plain, noisy = models.create(name), models.create(name, last_norm=FeatureWise)
        shapes = [jax.eval_shape(n.init, KEY, IMAGES) for n in (plain, noisy)]
        assert shapes[0]["params"].keys() == shapes[1]["params"].keys()
        with pytest.raises(Exception, match="noise"):  # Drawn without a key.
            jax.eval_shape(functools.partial(noisy.apply, **TRAIN), shapes[1], IMAGES)
