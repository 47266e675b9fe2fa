"""Which rows are equal, and how rows are scaled."""

import itertools

import jax
import numpy as np
import pytest

import rdc_jax
from rdc_jax.core.rows import equal_rows, l2_normalize

ROWS = {
    "zeros and ones": list(itertools.product([0, 1], repeat=10)),
    "three values": list(itertools.product([-1, 0, 1], repeat=6)),
    "permutations": list(itertools.permutations(range(1, 7))),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("x64", [False, True])
def test_rows_of_few_values_are_told_apart(kind, x64):
    with jax.enable_x64(x64):
        rows = np.array(ROWS[kind], np.float64 if x64 else np.float32)
        rows = np.concatenate([rows, rows[:3]])
        number = np.r_[: len(rows) - 3, :3]
        got = jax.jit(equal_rows)(rows)
        np.testing.assert_array_equal(got, number[:, None] == number[None, :])


def test_rows_that_share_no_feature_are_far_apart():
    rows = np.array([[1, 0, 0, 1], [0, 1, 1, 0]], np.float32)
    got = rdc_jax.calibrated_distances(rows, rdc_jax.RDCParams(lam=1.0))
    np.testing.assert_allclose(got[0, 1], np.sqrt(2), rtol=1e-6)


def test_a_zero_is_a_zero_whatever_its_sign():
    rows = np.array([[1, 0.0], [1, -0.0], [-1, 0.0]], np.float32)
    assert equal_rows(l2_normalize(jax.numpy.asarray(rows)))[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize("scale", [1e-37, 1e-20, 1.0, 1e20, 3e38])
def test_rows_of_any_magnitude_are_scaled_to_one(scale):
    rows = np.array([[0.6, -0.8, 0.0]], np.float32) * np.float32(scale)
    got = l2_normalize(jax.numpy.asarray(rows))
    np.testing.assert_allclose(got, [[0.6, -0.8, 0.0]], rtol=1e-6)
