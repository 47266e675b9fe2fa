"""The feature cache is one pass of the network, and notices every change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data.fakes import fake_pixels

from rdc_jax.data.features import feature_cache

_WEIGHTS = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)


class Network:
    """Mean colour times a matrix; counts its calls and its traces."""

    def __init__(self, dtype=jnp.float32, weights=_WEIGHTS):
        self.shapes, self.traces = [], 0

        @jax.jit
        def apply(images):
            self.traces += 1
            mean_b3 = images.astype(jnp.float32).mean((1, 2))
            return (mean_b3 @ weights).astype(dtype)

        self._apply = apply

    def __call__(self, images):
        if not isinstance(images, jax.core.Tracer):
            self.shapes.append(images.shape)
        return self._apply(images)


def _features(pixels, network, folder, **options):
    options = {"weights_fingerprint": "ab", "transform": "mean", **options}
    return feature_cache(pixels, network, cache_dir=folder, batch_size=16, **options)


def _expected(pixels):
    return pixels.images.astype(np.float32).mean((1, 2)) @ _WEIGHTS


@pytest.mark.parametrize("length", [1, 15, 16, 17, 32, 50])
def test_features_are_those_of_each_image(tmp_path, length):
    pixels = fake_pixels(length)
    feat_nd = _features(pixels, Network(), tmp_path)
    assert feat_nd.shape == (length, 5)
    assert feat_nd.dtype == np.float32
    np.testing.assert_allclose(feat_nd, _expected(pixels), rtol=1e-5, atol=1e-3)


def test_numbers_of_each_image_come_with_it(tmp_path):
    pixels = fake_pixels(50)
    network, places = Network(), np.arange(50)

    def apply(images, places_b, aspects_b):
        return network(images) + (places_b * aspects_b)[:, None]

    beside = (places, pixels.aspects)
    feat_nd = _features(pixels, apply, tmp_path, beside=beside)
    want = _expected(pixels) + (places * pixels.aspects)[:, None]
    np.testing.assert_allclose(feat_nd, want, rtol=1e-5, atol=1e-3)


def test_one_batch_shape_and_one_compilation(tmp_path):
    network = Network()
    _features(fake_pixels(50), network, tmp_path)
    assert network.shapes == [(16, 8, 8, 3)] * 4
    assert network.traces == 1


def test_kept_features_are_not_computed_again(tmp_path):
    first = _features(fake_pixels(50), Network(), tmp_path)
    network = Network()
    again = _features(fake_pixels(50), network, tmp_path)
    assert not network.shapes
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    "change",
    [
        {"weights_fingerprint": "cd"},
        {"transform": "centre crop"},
        {"pixels": fake_pixels(50, fingerprint="cd34")},
        {"network": Network(jnp.float16)},
    ],
    ids=["weights", "transform", "images", "dtype"],
)
def test_any_change_computes_them_again(tmp_path, change):
    base = {"pixels": fake_pixels(50), "network": Network()}
    _features(folder=tmp_path, **base)
    changed = {"network": Network(), **change}
    _features(folder=tmp_path, **{**base, **changed})
    assert len(changed["network"].shapes) == 4


def test_networks_do_not_overwrite_each_other(tmp_path):
    for fingerprint in ("ab", "cd"):
        _features(fake_pixels(), Network(), tmp_path, weights_fingerprint=fingerprint)
    network = Network()
    _features(fake_pixels(), network, tmp_path, weights_fingerprint="ab")
    assert not network.shapes


def test_half_precision_features_are_kept_as_float32(tmp_path):
    pixels = fake_pixels(50)
    feat_nd = _features(pixels, Network(jnp.bfloat16), tmp_path)
    assert feat_nd.dtype == np.float32
    np.testing.assert_allclose(feat_nd, _expected(pixels), rtol=1e-2, atol=1)


@pytest.mark.parametrize("devices", [2, pytest.param(8, marks=pytest.mark.devices8)])
def test_batches_can_be_spread_over_devices(tmp_path, devices):
    mesh = jax.make_mesh((devices,), ("b",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.P("b"))
    pixels = fake_pixels(50)
    feat_nd = _features(pixels, Network(), tmp_path, sharding=sharding)
    np.testing.assert_allclose(feat_nd, _expected(pixels), rtol=1e-5, atol=1e-3)
