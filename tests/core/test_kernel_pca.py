"""Kernel PCA against scikit-learn's, at scikit-learn's default parameters."""

import jax
import numpy as np
import pytest
from core.episodes import make_episode
from core.real import real_features
from oracles import rdc as oracle
from oracles.rdc import distances, normalise
from sklearn.decomposition import KernelPCA

import rdc_jax
from rdc_jax import RDCParams

NAMES = {
    "linear": "linear",
    "gaussian": "rbf",
    "polynomial": "poly",
    "sigmoid": "sigmoid",
}


# Two components: from the third on, the gaussian kernel of raw rows has eigenvalues
# close together, and rounding decides which a cut keeps. The sigmoid kernel is
# indefinite: scikit-learn refuses to take all its components.
@pytest.mark.parametrize(
    ("kernel", "dim"),
    [(kernel, 2) for kernel in NAMES]
    + [(kernel, 64) for kernel in NAMES if kernel != "sigmoid"],
)
@pytest.mark.parametrize("kernel_input", ["l2", "raw"])
def test_distances_equal_scikit_learns(kernel, kernel_input, dim):
    x = np.random.default_rng(0).standard_normal((30, 20)) ** 2
    params = RDCParams(subspace=kernel, kernel_input=kernel_input, dim=dim)
    with jax.enable_x64(True):
        got = np.asarray(rdc_jax.subspace(x, params))
    inputs = normalise(x) if kernel_input == "l2" else x
    want = KernelPCA(dim, kernel=NAMES[kernel]).fit_transform(inputs)
    np.testing.assert_allclose(distances(got), distances(want), atol=1e-10)
    in_float32 = np.asarray(rdc_jax.subspace(x.astype(np.float32), params))
    scale = np.abs(distances(want)).max()
    np.testing.assert_allclose(
        distances(in_float32), distances(want), atol=2e-6 * scale
    )


@pytest.mark.parametrize("kernel", NAMES)
def test_real_features_keep_their_digits(shared_dir, kernel):
    """Of rows of length one, all but a few thousandths of a kernel is constant."""
    x = real_features(shared_dir, "cub")[np.arange(100) % 20 < 16]
    got = rdc_jax.subspace(x, RDCParams(subspace=kernel))
    pca = KernelPCA(64, kernel=NAMES[kernel], eigen_solver="dense")
    want = pca.fit_transform(normalise(x))
    error = distances(normalise(got)) - distances(normalise(want))
    assert np.abs(error).max() < 1e-5


@pytest.mark.parametrize("kernel", NAMES)
def test_rdc_in_a_kernel_space_equals_the_oracle(kernel):
    support, labels, query = make_episode(shot=2)
    params = RDCParams(k=5, k2=3, dim=6, subspace=kernel)

    def project(x, params):
        pca = KernelPCA(params.dim, kernel=NAMES[kernel], eigen_solver="dense")
        return pca.fit_transform(normalise(x))

    votes, combined, *_ = oracle.rdc(support, labels, query, 5, params, project)
    with jax.enable_x64(True):
        support, query = support.astype(np.float64), query.astype(np.float64)
        got = rdc_jax.rdc(support, labels, query, num_classes=5, params=params)
        np.testing.assert_allclose(got.distances, combined, atol=1e-10)
        np.testing.assert_allclose(got.class_distances, votes, atol=1e-10)
