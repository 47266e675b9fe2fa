"""The whole of RDC against plain float64 loops, reading by reading."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.episodes import KINDS, make_episode
from oracles import rdc as oracle

import rdc_jax
from rdc_jax import RDCParams

# Traced, labels are not checked: a class may be empty, a label out of range.
traced_rdc = jax.jit(rdc_jax.rdc, static_argnames="num_classes")

# Small neighbourhoods, so that sets of a small task are not the whole task.
SMALL = dict(k=5, k2=3, dim=12)

READINGS = {
    "default": RDCParams(**SMALL),
    "squared_max": RDCParams(**SMALL, distance="squared_max"),
    "nearest": RDCParams(**SMALL, base="nearest"),
    "strict": RDCParams(**SMALL, overlap=">"),
    "unlabelled": RDCParams(**SMALL, labels=False),
    "unnormalised": RDCParams(**SMALL, normalize=False),
    "original": RDCParams(**SMALL, subspace="none"),
    "raw": RDCParams(**SMALL, kernel_input="raw"),
    "uncentred": RDCParams(**SMALL, centre=False),
    "raw_uncentred": RDCParams(**SMALL, kernel_input="raw", centre=False),
    "min": RDCParams(**SMALL, linkage="min"),
    "lam_0": RDCParams(**SMALL, lam=0.0),
    "lam_1": RDCParams(**SMALL, lam=1.0),
    "odd_k": RDCParams(k=7, k2=1, dim=12),
    "larger_than_task": RDCParams(k=60, k2=50, dim=12),
    "many_dims": RDCParams(k=5, k2=3, dim=500),
}


def check(episode, num_classes, params):
    support, labels, query = episode
    got = rdc_jax.rdc(support, labels, query, num_classes=num_classes, params=params)
    votes, combined, original, member = oracle.rdc(
        support, labels, query, num_classes, params
    )
    np.testing.assert_array_equal(got.neighbours, member)
    np.testing.assert_allclose(got.original, original, atol=1e-6)
    np.testing.assert_allclose(got.distances, combined, atol=1e-6)
    np.testing.assert_allclose(got.class_distances, votes, atol=1e-6)


@pytest.mark.parametrize("reading", READINGS)
def test_every_reading_equals_the_oracle(reading):
    for seed in range(3):
        check(make_episode(shot=2, way=4, seed=seed), 4, READINGS[reading])


def drawn_reading(seed):
    """Any value of every option at once."""
    rng = np.random.default_rng(seed)

    def one_of(*values):
        return values[rng.integers(len(values))]

    return RDCParams(
        k=one_of(1, 2, 4, 6, 9),
        k2=one_of(1, 2, 5),
        lam=one_of(0.2, 0.5, 0.8),
        dim=one_of(6, 12, 20),
        distance=one_of("euclidean", "squared_max"),
        base=one_of("reciprocal", "nearest"),
        overlap=one_of(">=", ">"),
        labels=one_of(True, False),
        normalize=one_of(True, False),
        subspace=one_of("tanh", "tanh", "none"),
        kernel_input=one_of("l2", "raw"),
        centre=one_of(True, False),
        linkage=one_of("mean", "min"),
    )


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 8))],
)
def test_readings_combine(seed):
    kind = ("relu", "duplicated")[seed % 2]
    check(make_episode(kind, shot=2, way=4, seed=seed), 4, drawn_reading(seed))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", ["default", "squared_max", "original"])
def test_every_kind_of_features_equals_the_oracle(kind, reading):
    check(make_episode(kind, shot=2, query=3), 5, READINGS[reading])


@pytest.mark.parametrize("shot", [1, 5])
def test_a_task_of_the_papers_size_equals_the_oracle(shot):
    check(make_episode("relu", shot=shot, query=15, d=96), 5, RDCParams())


def test_a_task_smaller_than_k_equals_the_oracle():
    check(make_episode(way=2, shot=1, query=2), 2, RDCParams())


def test_one_space_equals_the_oracle_with_and_without_labels():
    support, labels, query = make_episode(shot=2, query=4)
    x, params = np.concatenate([support, query]), READINGS["default"]
    for used in (None, labels):
        got = rdc_jax.calibrated_distances(x, params, support_labels=used)
        _, calibrated, _ = oracle.calibrate(x, params, used)
        np.testing.assert_allclose(got, calibrated, atol=1e-6)


@pytest.mark.parametrize("normalize", [True, False])
def test_npc_equals_the_oracle(normalize):
    support, labels, query = make_episode(shot=3)
    npc = jax.jit(rdc_jax.npc, static_argnames=("num_classes", "normalize"))
    got = npc(support, labels, query, num_classes=6, normalize=normalize)
    want = oracle.npc(support, labels, query, 6, normalize)
    np.testing.assert_allclose(got, want, rtol=2e-6)
    assert np.isinf(got[:, 5]).all()  # the sixth class has no supports


def test_equal_rows_are_at_distance_zero_wherever_they_stand():
    x = np.random.default_rng(0).standard_normal((97, 512)).astype(np.float32)
    x[[3, 50, 96]] = x[0]
    d = rdc_jax.calibrated_distances(x, RDCParams(lam=1.0))
    assert (d[np.ix_([0, 3, 50, 96], [0, 3, 50, 96])] == 0).all()


def test_near_rows_keep_their_digits():
    # |a|² + |b|² - 2ab in float32 would be off by 3e-4 here.
    rng = np.random.default_rng(0)
    x = rng.standard_normal(512) + 1e-4 * rng.standard_normal((40, 512))
    x = x.astype(np.float32)
    got = rdc_jax.calibrated_distances(x, RDCParams(lam=1.0))
    want = oracle.distances(oracle.normalise(x))
    np.testing.assert_allclose(got, want, atol=1e-6)
    assert 0 < want[0, 1] < 1e-3


def test_labels_out_of_range_belong_to_no_class():
    support, _, query = make_episode()
    stray = traced_rdc(support, jnp.full(5, 9), query, num_classes=5)
    assert np.isinf(stray.class_distances).all()


def test_supports_of_no_class_are_of_one_class_with_nobody():
    support, _, query = make_episode(shot=2)
    x, params = np.concatenate([support, query]), READINGS["default"]

    def distances(first, second):
        labels = jnp.arange(10) // 2
        labels = labels.at[jnp.array([2, 6])].set(jnp.array([first, second]))
        out = traced_rdc(support, labels, query, num_classes=5, params=params)
        one_space = rdc_jax.calibrated_distances(x, params, support_labels=labels)
        return out.distances, one_space

    combined, one_space = distances(-1, 77)
    np.testing.assert_array_equal(distances(-1, -1)[0], combined)
    np.testing.assert_array_equal(distances(77, 77)[0], combined)
    # Without a number of classes, any label from 0 on is a class.
    np.testing.assert_array_equal(distances(-1, -1)[1], one_space)
    assert np.abs(distances(77, 77)[1] - one_space).max() > 1e-3
    want = oracle.rdc(support, [0, 0, -1, 1, 2, 2, 77, 3, 4, 4], query, 5, params)
    np.testing.assert_allclose(combined, want[1], atol=1e-6)
