"""The public functions name a user's mistake before anything is compiled."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.episodes import make_episode
from jax.sharding import AxisType, PartitionSpec

import rdc_jax

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SUPPORT, LABELS, QUERY = make_episode(d=16)
METHODS = pytest.mark.parametrize(
    "method", [rdc_jax.rdc, rdc_jax.npc, rdc_jax.get("npc_l2")]
)
one_npc = functools.partial(rdc_jax.npc, num_classes=5)


class Tensor:
    """An array of a library that knows NumPy."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@METHODS
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"support_labels": LABELS + 1}, "count from 0, so give support_labels - 1"),
        ({"support_labels": LABELS - 2}, "support_labels has -2, with num_classes=5"),
        ({"num_classes": 3}, "support_labels has 3, .* num_classes=5"),
        ({"num_classes": 7}, "class 5 has no support"),
        ({"support_labels": np.array([0, 1, 2, 3, -1])}, "class 4 has no support"),
        ({"support": np.where(np.eye(5, 16), np.nan, SUPPORT)}, "infinity in row 0"),
        ({"support": SUPPORT[0]}, r"support \[s, d\] has shape \(16,\)"),
        ({"query": QUERY[None]}, r"has shape \(1, 15, 16\): for several tasks"),
        ({"query": QUERY[:, 1:]}, r"has shape \(15, 15\), but support has d=16"),
        ({"support_labels": LABELS[1:]}, r"has shape \(4,\), but support has s=5"),
        ({"support_labels": np.eye(5, dtype=int)}, "one class number for each support"),
        ({"query_mask": [True]}, r"has shape \(1,\), but query has q=15"),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else None,
)
def test_a_wrong_value_is_named(method, changed, message):
    task = {"support": SUPPORT, "support_labels": LABELS, "query": QUERY}
    with pytest.raises(ValueError, match=message):
        method(**{**task, "num_classes": 5, **changed})


@METHODS
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"support_labels": LABELS.astype(float)}, "must be integers, got float64"),
        ({"support_labels": list("abcde")}, "support_labels"),
        ({"support": {"a": 1}}, "support must be an array of numbers, got object"),
        ({"query": [[1.0], [1.0, 2.0]]}, "query cannot be made an array"),
        ({"num_classes": 5.0}, "num_classes must be an int, got 5.0"),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else None,
)
def test_a_wrong_type_is_named(method, changed, message):
    task = {"support": SUPPORT, "support_labels": LABELS, "query": QUERY}
    with pytest.raises(TypeError, match=message):
        method(**{**task, "num_classes": 5, **changed})


def test_parameters_are_no_dict_and_lam_is_a_share():
    with pytest.raises(TypeError, match=r"params must be rdc_jax.RDCParams\(...\)"):
        rdc_jax.rdc(SUPPORT, LABELS, QUERY, 5, params={"k": 5})
    with pytest.raises(ValueError, match="lam must be from 0 to 1"):
        rdc_jax.rdc(SUPPORT, LABELS, QUERY, 5, params=rdc_jax.RDCParams(lam=2.0))


def test_a_traced_number_of_classes_says_how_to_bind_it():
    with pytest.raises(TypeError, match="bind it, as in"):
        jax.jit(rdc_jax.npc)(SUPPORT, LABELS, QUERY, 5)


def test_lists_and_arrays_of_other_libraries_are_arrays():
    want = one_npc(SUPPORT, LABELS, QUERY)
    for kind in (np.ndarray.tolist, Tensor, jnp.asarray):
        got = one_npc(*map(kind, (SUPPORT, LABELS, QUERY)))
        np.testing.assert_allclose(got, want, atol=1e-6)
    one = jax.jit(lambda x: rdc_jax.subspace([x, 2 * x], rdc_jax.RDCParams(dim=1)))
    assert one(jnp.arange(3.0)).shape == (2, 1)
    assert rdc_jax.prepare(SUPPORT, ["l2", "power"]).shape == SUPPORT.shape


def test_a_support_may_be_of_no_class():
    labels = np.append(LABELS, -1)
    support = np.concatenate([SUPPORT, QUERY[:1]])
    want = one_npc(SUPPORT, LABELS, QUERY)
    np.testing.assert_allclose(one_npc(support, labels, QUERY), want, atol=1e-6)


def test_masked_or_traced_any_other_label_is_of_no_class():
    labels = np.array([0, 1, 9, 3, -4])
    for got in (
        one_npc(SUPPORT, labels, QUERY, support_mask=np.ones(5, bool)),
        jax.jit(one_npc)(SUPPORT, labels, QUERY),
    ):
        assert np.isinf(got[:, [2, 4]]).all() and np.isfinite(got[:, [0, 1, 3]]).all()


def test_transformations_pass_the_checks_and_keep_none_of_them():
    def batch(x):
        return jnp.stack([jnp.asarray(x)] * 2)

    want = one_npc(SUPPORT, LABELS, QUERY)
    mapped = jax.vmap(one_npc)
    mesh = jax.make_mesh((2,), ("task",), (AxisType.Auto,))
    spec = PartitionSpec("task")
    sharded = jax.shard_map(mapped, mesh=mesh, in_specs=spec, out_specs=spec)
    for fn in (mapped, jax.jit(mapped), jax.jit(sharded)):
        got = fn(batch(SUPPORT), batch(LABELS), batch(QUERY))
        np.testing.assert_allclose(got, batch(want), atol=1e-5)
    gradient = jax.grad(lambda query: one_npc(SUPPORT, LABELS, query).sum())(QUERY)
    assert np.isfinite(gradient).all()
    assert "callback" not in str(jax.make_jaxpr(one_npc)(SUPPORT, LABELS, QUERY))


@pytest.mark.parametrize("name", ["subspace", "calibrated_distances", "prepare"])
def test_features_of_one_task_are_a_matrix(name):
    with pytest.raises(ValueError, match="over_episodes"):
        getattr(rdc_jax, name)(QUERY[None])


def test_the_package_lists_its_public_names_and_version():
    assert set(rdc_jax.__all__) < set(dir(rdc_jax)) and "importlib" not in dir(rdc_jax)
    assert rdc_jax.__version__[0].isdigit()
