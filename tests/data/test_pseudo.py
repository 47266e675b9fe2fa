"""Pseudo-samples against plain loops, and how often each change is drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.data import transforms
from rdc_jax.data.transforms import pseudo
from rdc_jax.data.transforms.resample import Box

SIZE = 12
NOTHING = pseudo.Change(1.0, Box(0, 0, 0, 0), 0, 0, 0)


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(0).normal(size=(SIZE, SIZE, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def drawn():
    """What is drawn for 4,000 images."""
    keys = jax.random.split(jax.random.key(0), 4000)
    sample = jax.jit(jax.vmap(lambda key: pseudo.sample_change(key, SIZE)))
    return jax.tree.map(np.asarray, sample(keys))


@jax.jit
def changed(image, change):
    return pseudo.change(image, change)


def oracle(image, change):
    """The five changes one after the other, channels first as in torch."""
    x = image.transpose(2, 0, 1).astype(float)
    low, span = x.min(), x.max() - x.min()
    x = ((x - low) / span) ** float(change.gamma) * span + low
    mean = x.reshape(3, -1).mean(1)
    left, top, width, height = map(int, change.erased)
    for row in range(top, top + height):
        for column in range(left, left + width):
            x[:, row, column] = mean
    orders = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    orders = [order for order in orders if len({*order}) == 3]
    x = np.stack([x[channel] for channel in orders[int(change.order)]])
    if change.flip:
        x = np.flip(x, int(change.flip))
    return np.rot90(x, int(change.turns), (1, 2)).transpose(1, 2, 0)


@pytest.mark.parametrize(
    "one",
    [
        {},
        {"gamma": 1.4},
        {"erased": Box(2, 3, 5, 4)},
        {"order": 3},
        {"flip": 1},
        {"flip": 2},
        {"turns": 1},
        {"turns": 3},
        {"gamma": 1.2, "erased": Box(0, 5, 3, 7), "order": 5, "flip": 1, "turns": 2},
    ],
)
def test_an_image_is_changed_as_by_plain_loops(image, one):
    change = NOTHING._replace(**one)
    got = changed(image, jax.tree.map(jnp.asarray, change))
    np.testing.assert_allclose(got, oracle(image, change), atol=1e-5)


def test_no_change_leaves_every_bit(image):
    got = changed(image, jax.tree.map(jnp.asarray, NOTHING))
    np.testing.assert_array_equal(got, image)


def test_an_image_of_one_colour_stays_finite():
    grey = np.full((SIZE, SIZE, 3), 0.3, np.float32)
    change = NOTHING._replace(gamma=1.3)
    got = changed(grey, jax.tree.map(jnp.asarray, change))
    np.testing.assert_allclose(got, grey, rtol=1e-6)


def test_each_change_comes_as_often_as_it_should(drawn):
    pixels = drawn.erased.width * drawn.erased.height
    shares = {
        0.3: [drawn.gamma > 1],
        0.5: [pixels > 0, drawn.flip > 0, drawn.turns > 0],
        0.25: [drawn.flip == 1, drawn.flip == 2],
        0.5 / 3: [drawn.turns == 1, drawn.turns == 2, drawn.turns == 3],
        0.3 / 6: [drawn.order == order for order in range(1, 6)],
    }
    for expected, found in shares.items():
        for each in found:  # Four standard errors.
            assert abs(each.mean() - expected) < 4 * (0.25 / len(each)) ** 0.5


def test_what_is_erased_lies_inside_and_is_as_large_as_it_should_be(drawn):
    box = drawn.erased
    assert (box.left >= 0).all() and (box.left + box.width <= SIZE).all()
    assert (box.top >= 0).all() and (box.top + box.height <= SIZE).all()
    share = (box.width * box.height / SIZE**2)[box.width > 0]
    assert share.min() > 0.005 and share.max() < 0.42  # .02 to .33, in whole pixels
    assert 0.1 < share.mean() < 0.2
    assert drawn.gamma.min() >= 1.0 and drawn.gamma.max() <= 1.5


def test_versions_are_functions_of_the_key_and_of_their_place(image):
    images = jnp.stack([image, image])
    make = jax.jit(transforms.pseudo_samples, static_argnums=2)
    got = make(jax.random.key(1), images, 40)
    assert got.shape == (2, 40, SIZE, SIZE, 3)
    np.testing.assert_array_equal(got, make(jax.random.key(1), images, 40))
    assert not np.array_equal(got, make(jax.random.key(2), images, 40))
    # The same image in another place is changed in another way.
    assert (np.abs(got[0] - got[1]).max((1, 2, 3)) > 0).mean() > 0.8
    # About one version in 15 is left as it is by all five chances.
    untouched = (np.asarray(got) == image).all((2, 3, 4)).mean()
    assert 0.0 < untouched < 0.2


@pytest.mark.parametrize(("shot", "versions"), [(5, 4), (1, 16), (3, 6), (20, 1)])
def test_a_set_holds_each_image_and_its_versions_in_order(image, shot, versions):
    assert transforms.versions_of(75, 5 * shot) == versions
    images = jnp.stack([image + i for i in range(3)])
    make = jax.jit(transforms.pseudo_set, static_argnums=2)
    got = make(jax.random.key(0), images, versions)
    assert got.shape == (3, versions, SIZE, SIZE, 3)
    np.testing.assert_array_equal(got[:, 0], images)
