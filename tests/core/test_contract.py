"""What JAX callers expect: transformations, dtypes, traces, gradients, imports."""

import functools
import os
import subprocess
import sys
from typing import get_args

import jax
import jax.numpy as jnp
import jax.test_util
import jaxtyping
import numpy as np
import pytest
from core.episodes import make_episode
from jax.sharding import AxisType, PartitionSpec

import rdc_jax
from rdc_jax import RDCParams
from rdc_jax.core import calibration
from rdc_jax.core.params import Subspace

pytestmark = pytest.mark.usefixtures("compiled_quickly")

PARAMS = RDCParams(k=5, k2=3, dim=8)
one_episode = functools.partial(calibration.rdc, num_classes=5, params=PARAMS)


@pytest.fixture(scope="module")
def batch():
    episodes = [make_episode("relu", seed=seed) for seed in range(8)]
    return tuple(np.stack(arrays) for arrays in zip(*episodes, strict=True))


@pytest.fixture(scope="module")
def expected(batch):
    """One by one, jitted."""
    outs = [jax.jit(one_episode)(*episode) for episode in zip(*batch, strict=True)]
    return jax.tree.map(lambda *x: np.stack(x), *outs)


def assert_same(got, want):
    np.testing.assert_array_equal(got.neighbours, want.neighbours)
    for a, b in zip(got[:3], want[:3], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_eager_equals_jit(batch, expected):
    with jax.disable_jit():
        got = one_episode(*(x[0] for x in batch))
    assert_same(got, jax.tree.map(lambda x: x[0], expected))


def test_vmap_equals_one_by_one(batch, expected):
    assert_same(jax.jit(jax.vmap(one_episode))(*batch), expected)


def test_shard_map_over_eight_devices_equals_one_by_one(batch, expected):
    assert jax.device_count() == 8
    mesh = jax.make_mesh((8,), ("episode",), (AxisType.Auto,))
    spec = PartitionSpec("episode")
    fn = jax.shard_map(jax.vmap(one_episode), mesh=mesh, in_specs=spec, out_specs=spec)
    assert_same(jax.jit(fn)(*batch), expected)


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
def test_shard_map_follows_the_iterated_subspace_too(batch, axis_type):
    """Its checks of what varies over devices reach into the loop."""
    mesh = jax.make_mesh((8,), ("episode",), (axis_type,))
    spec = PartitionSpec("episode")
    params = RDCParams(k=5, k2=3, dim=4, solver="iterate")
    fn = jax.vmap(functools.partial(calibration.rdc, num_classes=5, params=params))
    mapped = jax.shard_map(fn, mesh=mesh, in_specs=spec, out_specs=spec)
    sharded = jax.device_put(batch, jax.sharding.NamedSharding(mesh, spec))
    assert_same(jax.jit(mapped)(*sharded), jax.jit(fn)(*batch))


def test_a_mesh_by_sharding_alone_equals_one_by_one(batch, expected):
    mesh = jax.make_mesh((8,), ("episode",), (AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, PartitionSpec("episode"))
    sharded = jax.device_put(batch, sharding)
    assert_same(jax.jit(jax.vmap(one_episode))(*sharded), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("x64", [False, True])
def test_dtype_in_is_dtype_out(dtype, x64):
    with jax.enable_x64(x64):
        support, labels, query = make_episode()
        support, query = (x.astype(jnp.dtype(dtype)) for x in (support, query))
        # Without x64, jax reads float64 as float32.
        dtype = jnp.dtype(dtype) if x64 or dtype != "float64" else jnp.float32
        out = rdc_jax.rdc(support, labels, query, num_classes=5, params=PARAMS)
        for x in out[:3]:
            assert x.dtype == dtype
        assert rdc_jax.npc(support, labels, query, num_classes=5).dtype == dtype
        assert rdc_jax.calibrated_distances(query, PARAMS).dtype == dtype
        assert rdc_jax.subspace(query, PARAMS).dtype == dtype
        loss = rdc_jax.kl_loss(out.original, out.distances, out.neighbours)
        assert loss.dtype == dtype
        assert rdc_jax.mse_loss(*out[1:][::-1][1:], out.neighbours).dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
def test_strict_promotion_of_dtypes_finds_nothing_to_promote(dtype):
    support, labels, query = make_episode(shot=2)
    support, query = (jnp.asarray(4 * x).astype(dtype) for x in (support, query))
    readings = [{"subspace": name} for name in get_args(Subspace)] + [
        {"solver": "iterate"},
        {"subspace": "gaussian", "kernel_input": "raw", "centre": False},
        {"distance": "squared_max", "linkage": "min", "normalize": False},
        {"base": "nearest", "overlap": ">", "labels": False},
    ]

    def everything(support, labels, query):
        mask = jnp.ones(len(query), bool)
        for reading in readings:
            params = RDCParams(k=5, k2=3, dim=4, **reading)
            yield rdc_jax.subspace(query, params, mask=mask)
            episode = (support, labels, query, 5)
            out = rdc_jax.rdc(*episode, params=params, query_mask=mask)
            yield out, out.predictions
        for normalize in (True, False):
            yield rdc_jax.npc(*episode, normalize=normalize, query_mask=mask)
        yield rdc_jax.calibrated_distances(support, PARAMS, support_labels=labels)
        matrices = (out.original, out.distances, out.neighbours)
        yield jax.grad(rdc_jax.kl_loss)(*matrices, 0.5, 3.0)
        yield jax.grad(rdc_jax.mse_loss)(*matrices, 0.5)
        yield rdc_jax.attention_mask(out.neighbours, 0.5)
        one = functools.partial(rdc_jax.npc, num_classes=5)
        batch = jax.tree.map(lambda x: jnp.stack([x] * 3), episode[:3])
        yield rdc_jax.over_episodes(one, chunk=2)(*batch)

    with jax.numpy_dtype_promotion("strict"):
        jax.eval_shape(lambda *x: list(everything(*x)), support, labels, query)


def test_half_precision_input_is_computed_in_float32():
    support, labels, query = make_episode()
    half = [jnp.asarray(x, jnp.bfloat16) for x in (support, query)]
    low = rdc_jax.rdc(half[0], labels, half[1], num_classes=5)
    full = rdc_jax.rdc(
        half[0].astype("float32"), labels, half[1].astype("float32"), num_classes=5
    )
    np.testing.assert_array_equal(low.neighbours, full.neighbours)
    np.testing.assert_array_equal(low.distances, full.distances.astype(jnp.bfloat16))


def test_one_trace_per_shape():
    traces = []

    @jax.jit
    def counted(*episode):
        traces.append(None)
        return rdc_jax.rdc(*episode, num_classes=5)

    for seed in range(3):
        counted(*make_episode(seed=seed))
    assert len(traces) == 1
    jitted = rdc_jax.rdc.__wrapped__
    before = jitted._cache_size()
    for lam in (0.1, 0.9):
        rdc_jax.rdc(*make_episode(way=4), num_classes=4, params=RDCParams(lam=lam))
    assert jitted._cache_size() == before + 1


def test_a_sweep_over_lam_is_one_call():
    episode = make_episode()

    def at(lam):
        params = RDCParams(k=5, k2=3, dim=8, lam=lam)
        return rdc_jax.rdc(*episode, num_classes=5, params=params).class_distances

    lams = jnp.linspace(0, 1, 5)
    swept = jax.jit(jax.vmap(at))(lams)
    for lam, got in zip(lams, swept, strict=True):
        np.testing.assert_allclose(got, at(lam), atol=1e-6)
    assert np.isfinite(jax.grad(lambda lam: at(lam).sum())(0.3))


@functools.partial(jax.jit, static_argnames="params")
def gradients(support, labels, query, params):
    def total(support, query):
        out = rdc_jax.rdc(support, labels, query, num_classes=5, params=params)
        return out.distances.sum() + out.class_distances.sum()

    return jax.grad(total, argnums=(0, 1))(support, query)


@pytest.mark.parametrize("kind", ["random", "duplicated", "equal", "zeros"])
@pytest.mark.parametrize(
    "reading",
    [
        {},
        {"subspace": "gaussian"},
        {"distance": "squared_max", "normalize": False, "kernel_input": "raw"},
        {"solver": "iterate", "linkage": "min"},
    ],
    ids=str,
)
def test_gradients_are_finite(kind, reading):
    params = RDCParams(k=5, k2=3, dim=8, **reading)
    got = gradients(*make_episode(kind), params)
    assert all(np.isfinite(g).all() for g in got)
    if kind == "random":
        assert all(np.abs(g).max() > 0 for g in got)


def test_gradients_are_finite_under_masks():
    support, labels, query = make_episode()
    query[-2:] = np.nan
    mask = np.arange(len(query)) < len(query) - 2

    def total(query):
        out = rdc_jax.rdc(support, labels, query, num_classes=5, query_mask=mask)
        loss = rdc_jax.kl_loss(
            out.original, out.distances, out.neighbours, mask=np.r_[[True] * 5, mask]
        )
        return out.class_distances.sum() + loss

    gradient = jax.grad(total)(query)
    assert np.isfinite(gradient).all()
    assert (gradient[-2:] == 0).all() and np.abs(gradient).max() > 0


def test_the_gradient_of_plain_distances_is_the_analytic_one():
    x = np.random.default_rng(0).standard_normal((6, 4))
    with jax.enable_x64(True):
        params = RDCParams(lam=1.0)
        weight = np.random.default_rng(1).standard_normal((6, 6))

        def total(x):
            return (weight * rdc_jax.calibrated_distances(x, params)).sum()

        jax.test_util.check_grads(total, (jnp.asarray(x),), order=1, modes=["rev"])


@pytest.fixture
def no_type_checks():
    """As outside the tests, where annotations are not checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("no_type_checks")
def test_episodes_of_wrong_shape_are_named():
    support, labels, query = make_episode()
    with pytest.raises(ValueError, match="over_episodes"):
        calibration.rdc(support[None], labels, query, 5)
    with pytest.raises(ValueError, match=r"has shape \(15, \d+\), but support has d=3"):
        calibration.rdc(support[:, :3], labels, query, 5)
    with pytest.raises(ValueError, match=r"support_labels \[s\] has shape \(3,\)"):
        calibration.rdc(support, labels[:3], query, 5)


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize(
    ("name", "value"),
    [("k", 0), ("k2", 1.5), ("dim", -1), ("subspace", "pca"), ("labels", "off")],
)
def test_wrong_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"RDCParams.{name} must be"):
        RDCParams(**{name: value})


def test_import_is_light_and_without_side_effects():
    code = """
import sys, jax
before = dict(jax.config.values)
import rdc_jax
assert dict(jax.config.values) == before
heavy = {"flax", "orbax", "tensorflow_datasets", "grain", "optax", "PIL", "torch"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
try:
    jax.devices()
except RuntimeError:
    sys.exit()
raise AssertionError("there is such a backend")
"""
    # A backend that cannot be started: whatever starts it fails.
    environment = {**os.environ, "JAX_PLATFORMS": "none_such"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
