"""A norm of one's own in every block: noise of features, as for new domains."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from rdc_jax import models
from rdc_jax.models.heads import Classifier
from rdc_jax.models.model import wrap
from rdc_jax.models.norm import BatchNorm
from rdc_jax.models.resnet import BasicBlock, ResNet

KEY = jax.random.key(3)
IMAGES = jax.random.normal(jax.random.key(0), (3, 16, 16, 3))
BLOCKS = (functools.partial(BasicBlock, 4), functools.partial(BasicBlock, 8, 2))
TRAIN = {"train": True, "mutable": ["batch_stats"]}


class FeatureWise(BatchNorm):
    """Batch norm, then in training one random scale and shift a channel and batch.

    Tseng et al., "Cross-Domain Few-Shot Classification via Learned Feature-Wise
    Transformation", ICLR 2020.
    """

    scale: float = 0.3
    shift: float = 0.5

    @nn.compact
    def __call__(self, x_bhwc, *, train):
        y_bhwc = super().__call__(x_bhwc, train=train)
        if not train or self.is_initializing():
            return y_bhwc
        noise_2c = jax.random.normal(self.make_rng("noise"), (2, x_bhwc.shape[-1]))
        scale_c = 1 + jax.nn.softplus(self.scale) * noise_2c[0]
        shift_c = jax.nn.softplus(self.shift) * noise_2c[1]
        return (y_bhwc * scale_c + shift_c).astype(self.dtype)


def networks():
    plain = ResNet(BLOCKS)
    return plain, plain.clone(last_norm=FeatureWise), plain.init(KEY, IMAGES)


def test_it_has_the_variables_of_the_plain_network_and_its_features_at_test():
    plain, noisy, variables = networks()
    assert jax.tree.structure(noisy.init(KEY, IMAGES)) == jax.tree.structure(variables)
    want, _ = plain.apply(variables, IMAGES)
    np.testing.assert_array_equal(noisy.apply(variables, IMAGES)[0], want)


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


def test_it_follows_a_blocks_second_and_its_shortcuts_norm_alone():
    _, noisy, variables = networks()
    catch = {"rngs": {"noise": KEY}, "capture_intermediates": True}
    _, state = noisy.apply(
        variables, IMAGES, train=True, mutable=["batch_stats", "intermediates"], **catch
    )
    block = state["intermediates"]["block2"]
    spread = {
        name: float(np.std(block[name]["__call__"][-1].mean((0, 1, 2))))
        for name in ("norm1", "norm2", "shortcut_norm")
    }
    assert spread["norm1"] < 1e-5
    assert min(spread["norm2"], spread["shortcut_norm"]) > 0.1


def test_the_key_reaches_it_through_models_and_classifiers():
    _, noisy, variables = networks()
    model = wrap(noisy, variables)
    apply = jax.jit(lambda key: model.apply(IMAGES, train=True, key=key)[0])
    assert not np.array_equal(apply(KEY), apply(jax.random.key(4)))
    classifier = Classifier(noisy, 5)
    logits = [
        classifier.apply(
            classifier.init(KEY, IMAGES), IMAGES, **TRAIN, rngs={"noise": key}
        )[0][0]
        for key in (KEY, jax.random.key(4))
    ]
    assert not np.array_equal(*logits)


def test_every_residual_network_takes_a_norm():
    for name in ("resnet10", "resnet12", "resnet18"):
        plain, noisy = models.create(name), models.create(name, last_norm=FeatureWise)
        shapes = [jax.eval_shape(n.init, KEY, IMAGES) for n in (plain, noisy)]
        assert jax.tree.structure(shapes[0]) == jax.tree.structure(shapes[1])
        with pytest.raises(Exception, match="noise"):  # Drawn without a key.
            jax.eval_shape(functools.partial(noisy.apply, **TRAIN), shapes[1], IMAGES)
