"""Features of several views and layers, against the network applied by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

import rdc_jax
from rdc_jax.data import transforms
from rdc_jax.methods import get_method
from rdc_jax.methods.views import Views
from rdc_jax.models.model import wrap
from rdc_jax.runtime.errors import UserError

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SIZE = 20  # Cut out of 23.


class Net(nn.Module):
    """Two layers whose means differ between an image and its mirror image."""

    @nn.compact
    def __call__(self, images, train):
        low = nn.relu(nn.Conv(4, (3, 3), padding="VALID", name="low")(images))
        high = nn.relu(nn.Conv(5, (3, 3), padding="VALID", name="high")(low))
        return high.mean(axis=(1, 2)), {"low": low, "high": high}


@pytest.fixture(scope="module")
def model():
    images = jnp.zeros((1, SIZE, SIZE, 3))
    return wrap(
        Net(),
        jax.jit(Net().init, static_argnames="train")(
            jax.random.key(0), images, train=False
        ),
    )


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (3, 23, 23, 3), np.uint8)


def layer(model, batch, name):
    return np.asarray(model.apply(batch)[1][name].mean(axis=(1, 2)))


def batches(images):
    whole, crop = (
        transforms.normalize(jnp.asarray(images, jnp.float32)),
        transforms.test_batch(images, SIZE),
    )
    return [crop, crop[:, :, ::-1], whole, whole[:, :, ::-1]]


def test_one_view_of_the_output_is_what_the_network_gives(model, images):
    got = Views().embed(model, images, SIZE)
    np.testing.assert_allclose(
        got, model(transforms.test_batch(images, SIZE)), atol=1e-6
    )
    assert not Views().described


@pytest.mark.parametrize("count", [1, 2, 4])
def test_views_are_averaged(count, model, images):
    got = Views.from_text(count, "high").embed(model, images, SIZE)
    rows = [layer(model, batch, "high") for batch in batches(images)[:count]]
    np.testing.assert_allclose(got, np.mean(rows, axis=0), atol=1e-5)


def test_layers_stand_side_by_side_with_their_weights(model, images):
    views = Views.from_text(2, "low:0.7, high")
    got = np.asarray(views.embed(model, images, SIZE))
    low, high = np.split(got, [4], axis=1)
    np.testing.assert_allclose(np.linalg.norm(low, axis=1), 0.7, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(high, axis=1), 1.0, rtol=1e-5)
    mean = np.mean([layer(model, x, "low") for x in batches(images)[:2]], axis=0)
    want = 0.7 * mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(low, want, atol=1e-5)
    assert views.described == "mean of 2 views of 0.7 low + 1 high"


def test_an_image_and_its_mirror_image_have_the_same_two_views(model, images):
    views = Views.from_text(2, "low,high")
    square = images[:, :SIZE, :SIZE]
    one, other = (views.embed(model, x, 14) for x in (square, square[:, :, ::-1]))
    np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("npc_l2", Views.from_text(2, "low,high")),
        ("npc_l2(views=4)", Views.from_text(4, "low,high")),
        ("rdc_plus(layers=low:0.5+high)", Views.from_text(2, "low:0.5,high")),
        ("npc_l2(views=1;layers=high)", Views.from_text(1, "high")),
        ("rdc_ft", Views.from_text(2, "low,high")),
    ],
)
def test_a_method_may_ask_for_other_features(text, want):
    assert Views.from_text(2, "low,high").asked_by(get_method(text)) == want


def test_a_function_of_features_takes_no_views():
    with pytest.raises(UserError, match="the features are yours"):
        rdc_jax.get("npc_l2(views=2)")


@pytest.mark.parametrize("layers", ["low:0", "low:x", "", "low,,high"])
def test_layers_that_cannot_be_read_are_refused(layers):
    with pytest.raises(UserError, match="positive weights"):
        Views.from_text(1, layers)


def test_other_counts_and_unknown_layers_are_named(model, images):
    with pytest.raises(UserError, match="1, 2, 4, got 3"):
        Views(3)
    with pytest.raises(UserError, match=r"no layer 'block9'.*low, high, features"):
        Views.from_text(1, "block9").embed(model, images, SIZE)
