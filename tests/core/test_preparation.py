"""Preparation of features, against plain NumPy written from each step's definition."""

from typing import get_args

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import rdc_jax
from rdc_jax.core.preparation import DEFAULT_STEPS, Step

pytestmark = pytest.mark.usefixtures("compiled_quickly")

LABELS = np.array([0, 1, 0, 1])
STEPS = get_args(Step)


@pytest.fixture
def features():
    return np.random.default_rng(0).standard_normal((12, 7)).astype(np.float32)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def centroid(x):
    return x.mean(axis=0) / np.linalg.norm(x.mean(axis=0))


def balanced_affinity(x):
    """Sinkhorn's scaling of exp(cos / .1) without its diagonal, ten times."""
    n = len(x)
    plan = np.exp((unit(x) @ unit(x).T - 1) / 0.1)
    np.fill_diagonal(plan, 0)
    for _ in range(10):
        plan /= plan.sum(axis=1, keepdims=True)
        plan /= plan.sum(axis=0, keepdims=True)
    plan /= plan.max()
    for i in range(4):
        for j in range(4):
            plan[i, j] = LABELS[i] == LABELS[j]
    plan[np.arange(n), np.arange(n)] = 1
    return plan


PLAIN = {
    "l2": unit,
    "power": lambda x: np.sign(x) * np.sqrt(np.abs(x)),
    "centre": lambda x: x - x.mean(axis=0),
    "centre_support": lambda x: x - x[:4].mean(axis=0),
    "centre_apart": lambda x: np.concatenate(
        [y - y.mean(axis=0) for y in (x[:4], x[4:])]
    ),
    "uncentroid": lambda x: x - np.outer(x @ centroid(x), centroid(x)),
    "zscore": lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
    "luo": lambda x: np.sign(x) * np.log(1 / np.abs(x) + 1) ** -1.3,
    "bpa": balanced_affinity,
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_equals_its_definition(step, features):
    got = rdc_jax.prepare(features, (step,), support_labels=LABELS)
    np.testing.assert_allclose(got, PLAIN[step](features.astype(float)), atol=1e-5)


def test_the_default_is_root_length_mean_length(features):
    want = features.astype(float)
    for step in ("power", "l2", "centre", "l2"):
        want = PLAIN[step](want)
    np.testing.assert_allclose(rdc_jax.prepare(features), want, atol=1e-6)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("filler", [0.0, 9.0, np.nan])
def test_padding_is_inert_and_comes_back_as_zeros(step, filler, features):
    """Supports are padded, too: theirs are the first rows whatever the mask says."""
    plain = rdc_jax.prepare(features, ("l2", step), support_labels=LABELS)
    padding = np.full((3, 7), filler, np.float32)
    padded = np.concatenate([features[:4], padding[:1], features[4:], padding[1:]])
    real = np.r_[:4, 5:13]
    mask = np.isin(np.arange(15), real)
    labels = np.r_[LABELS, 0]
    got = rdc_jax.prepare(padded, ("l2", step), mask=mask, support_labels=labels)
    columns = real if step == "bpa" else slice(None)
    np.testing.assert_allclose(got[real][:, columns], plain, atol=1e-6)
    assert not np.asarray(got[~mask]).any()


def test_a_row_that_is_not_finite_is_nan_and_changes_no_other(features):
    broken = features.copy()
    broken[5, 2] = np.inf
    got = rdc_jax.prepare(broken)
    assert np.isnan(got[5]).all()
    others = np.delete(np.arange(12), 5)
    np.testing.assert_allclose(
        got[others], rdc_jax.prepare(features[others]), atol=1e-6
    )


@pytest.mark.parametrize("step", STEPS)
def test_gradients_are_finite_at_zero_rows_and_entries(step, features):
    features[3], features[6, 2] = 0, 0

    def total(x):
        return (rdc_jax.prepare(x, (step,), support_labels=LABELS) ** 2).sum()

    assert np.isfinite(jax.grad(total)(features)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtype_in_is_dtype_out(dtype, features):
    assert rdc_jax.prepare(features.astype(jnp.dtype(dtype))).dtype == dtype


@pytest.fixture
def no_type_checks():
    """As outside the tests, where annotations are not checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("no_type_checks")
def test_steps_that_cannot_be_done_are_named(features):
    with pytest.raises(ValueError, match=r"'whiten'.*l2, power"):
        rdc_jax.prepare(features, ("whiten",))
    with pytest.raises(ValueError, match="support_labels"):
        rdc_jax.prepare(features, ("centre_support",))
    assert DEFAULT_STEPS == ("power", "l2", "centre", "l2")
