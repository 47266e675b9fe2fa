"""The iterated tanh subspace against a full decomposition."""

import functools

import jax
import numpy as np
import pytest
from core.episodes import make_episode
from core.real import real_features
from oracles.rdc import distances, normalise, tanh_subspace

import rdc_jax
from rdc_jax import RDCParams
from rdc_jax.core.subspace import choose_solver


def features(kind, n=40, d=256, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    centres = rng.standard_normal((5, d))
    return {
        "random": x,
        "clustered": centres[np.arange(n) % 5] + 0.3 * x,
        "sparse": np.maximum(x - 1.5, 0),
        "uneven": np.abs(x) * np.exp(2 * rng.standard_normal(d)),
        "tight": centres[np.arange(n) % 5] + 1e-4 * x,
        "one_direction": np.outer(rng.standard_normal(n), centres[0]),
        "low_rank": rng.standard_normal((n, 4)) @ rng.standard_normal((4, d)),
    }[kind].astype(np.float32)


def distance_error(x, params):
    got = rdc_jax.subspace(x, params)
    want = tanh_subspace(x, params)
    return np.abs(distances(normalise(got)) - distances(normalise(want))).max()


@pytest.mark.parametrize(
    "kind",
    ["random", "clustered", "sparse", "uneven", "tight", "one_direction", "low_rank"],
)
def test_iterating_equals_the_full_decomposition(kind):
    params = RDCParams(dim=16, solver="iterate")
    assert distance_error(features(kind), params) < 1e-4


@pytest.mark.parametrize("rank", [1, 2, 8, 15])
def test_rows_of_any_rank_are_iterated(rank):
    rng = np.random.default_rng(rank)
    x = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, 256))
    params = RDCParams(dim=16, solver="iterate")
    assert distance_error(x.astype(np.float32), params) < 1e-4


@pytest.mark.parametrize("kernel_input", ["l2", "raw"])
@pytest.mark.parametrize("centre", [True, False])
def test_exact_equals_the_full_decomposition_in_every_reading(kernel_input, centre):
    params = RDCParams(dim=16, solver="exact", kernel_input=kernel_input, centre=centre)
    x = features("sparse", d=64)
    assert distance_error(x, params) < 1e-4


@pytest.mark.parametrize("solver", ["iterate", "exact"])
def test_the_subspace_has_as_many_columns_as_asked_for(solver):
    params = RDCParams(dim=16, solver=solver)
    assert rdc_jax.subspace(features("random"), params).shape == (40, 16)


def test_tight_clusters_whose_spectrum_falls_slowly_take_more_rounds():
    # Noise that is small beside the centres, of either sign to the kernel.
    support, _, query = make_episode(shot=1, query=6, d=256)
    params = RDCParams(dim=16, solver="iterate")
    assert distance_error(np.concatenate([support, query]), params) < 2e-5


def test_auto_falls_back_where_iterating_is_inexact():
    # Raw and uncentred, the kernel saturates: its spectrum does not fall with the rows.
    saturated = 0.3 * np.abs(features("random"))
    reading = dict(dim=32, kernel_input="raw", centre=False)
    exact = distance_error(saturated, RDCParams(**reading))
    assert choose_solver((40, 256), RDCParams(**reading)) == "exact"
    assert exact < 2e-5
    assert distance_error(saturated, RDCParams(solver="iterate", **reading)) > 3 * exact


def test_auto_iterates_only_where_that_is_exact_and_pays():
    assert choose_solver((80, 512), RDCParams()) == "iterate"
    assert choose_solver((100, 512), RDCParams()) == "iterate"
    assert choose_solver((80, 512), RDCParams(dim=128)) == "exact"
    assert choose_solver((80, 128), RDCParams()) == "exact"
    assert choose_solver((80, 512), RDCParams(kernel_input="raw")) == "exact"
    assert choose_solver((80, 128), RDCParams(solver="iterate")) == "iterate"


def test_as_many_dimensions_as_features_is_a_rotation():
    x = features("random", d=32)
    got = rdc_jax.subspace(x, RDCParams(dim=32))
    centred = normalise(x) - normalise(x).mean(axis=0)
    np.testing.assert_allclose(got @ got.T, centred @ centred.T, atol=1e-5)


@pytest.mark.slow
def test_real_features_within_1e_4_of_the_full_decomposition(shared_dir):
    for name in ("cub", "isic"):
        x = real_features(shared_dir, name)
        for rows in (slice(None), np.arange(100) % 20 < 16):  # 5 shots, 1 shot
            assert choose_solver(x[rows].shape, RDCParams()) == "iterate"
            assert distance_error(x[rows], RDCParams()) < 1e-4


def test_features_whose_kernel_would_fill_the_memory_are_refused():
    def run(subspace):
        feat = jax.ShapeDtypeStruct((10, 150_528), np.float32)
        labels = np.repeat(np.arange(5), 2)
        params = RDCParams(subspace=subspace)
        fn = functools.partial(rdc_jax.rdc, num_classes=5, params=params)
        return jax.eval_shape(fn, feat, labels, feat).class_distances.shape

    with pytest.raises(ValueError, match="150,528 would need a matrix of 91 GB"):
        run("tanh")
    assert run("none") == run("linear") == (10, 5)
