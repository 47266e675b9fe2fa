"""What every method on features promises, whoever registered it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax import methods
from rdc_jax.methods import FeatureMethod, Task, get_method

pytestmark = pytest.mark.usefixtures("compiled_quickly")

WAY, D = 3, 8
LABELS = np.array([0, 1, 2, 0, 1, 2], np.int32)
Q = 7
# Sizes that fit the tiny tasks, for methods whose defaults do not; fewer turns.
SMALL = {"k": 3, "k2": 2, "dim": 4, "steps": 3, "rounds": 2, "scalings": 4}


def small(name):
    """The method with parameters for tiny tasks."""
    method = get_method(name)
    changes = {}
    for field in dataclasses.fields(method):
        value = getattr(method, field.name)
        if dataclasses.is_dataclass(value):
            own = {f.name for f in dataclasses.fields(value)} & SMALL.keys()
            changes[field.name] = dataclasses.replace(
                value, **{name: SMALL[name] for name in own}
            )
        elif field.name in SMALL:
            changes[field.name] = SMALL[field.name]
    return dataclasses.replace(method, **changes)


NAMES = [
    name for name in methods.names() if isinstance(get_method(name), FeatureMethod)
]


def make_task(seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((WAY, D)) + 1
    labels = np.concatenate([LABELS, rng.integers(0, WAY, Q)])
    rows = np.abs(centres[labels] + 0.7 * rng.standard_normal((len(labels), D)))
    rows = rows.astype(np.float32)
    return Task(rows[: len(LABELS)], LABELS, rows[len(LABELS) :], num_classes=WAY)


def padded(task, filler):
    """The task with padding before, between and after its rows, and its masks."""
    s = np.isin(np.arange(8), [0, 2, 3, 4, 5, 7])
    q = np.isin(np.arange(9), [0, 1, 2, 4, 5, 6, 8])
    support = np.full((8, D), filler, np.float32)
    query = np.full((9, D), filler, np.float32)
    labels = np.ones(8, np.int32)
    support[s], labels[s], query[q] = task.support, LABELS, task.query
    return Task(support, labels, query, WAY, support_mask=s, query_mask=q)


@functools.cache
def jitted(name):
    return jax.jit(small(name))


@functools.cache
def expected(name):
    return np.asarray(jitted(name)(make_task()))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_one_finite_distance_for_each_query_and_class(name):
    assert expected(name).shape == (Q, WAY)
    assert np.isfinite(expected(name)).all()


def test_padding_is_inert_whatever_it_holds(name):
    for filler in (np.nan, np.inf, 3.0):
        got = np.asarray(jitted(name)(padded(make_task(), filler)))
        mask = padded(make_task(), filler).query_mask
        np.testing.assert_allclose(got[mask], expected(name), rtol=1e-4, atol=2e-5)
        assert (got[~mask] == 0).all()


def test_the_order_of_rows_does_not_matter(name):
    task = make_task()
    s_order, q_order = np.random.default_rng(1).permutation(6), np.r_[3:Q, :3]
    shuffled = Task(
        *(task.support[s_order], LABELS[s_order], task.query[q_order]), num_classes=WAY
    )
    got = jitted(name)(shuffled)
    np.testing.assert_allclose(got, expected(name)[q_order], rtol=1e-4, atol=2e-5)


def test_a_query_that_is_not_finite_is_as_good_as_none(name):
    """Its own distances are NaN, those of the others as if it were padding."""
    task = padded(make_task(), 0.0)
    broken, without = (
        task.replace(query=task.query.copy(), query_mask=task.query_mask.copy())
        for _ in range(2)
    )
    broken.query[2, 1], without.query_mask[2] = np.nan, False
    got = np.asarray(jitted(name)(broken))
    assert np.isnan(got[2]).all()
    want = np.asarray(jitted(name)(without))
    others = without.query_mask
    np.testing.assert_allclose(got[others], want[others], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("label", [-1, WAY])
def test_other_labels_are_no_class(name, label):
    """All of a class's supports without label: nothing is near to that class."""
    labels = np.where(LABELS == 1, label, LABELS).astype(np.int32)
    got = np.asarray(jitted(name)(make_task().replace(support_labels=labels)))
    assert (got[:, 1] == np.inf).all()
    assert np.isfinite(got[:, [0, 2]]).all()


def test_vmap_equals_a_loop_and_nothing_is_traced_twice(name):
    traces = []

    @jax.jit
    def batched(support, labels, query):
        traces.append(None)
        task = Task(support, labels, query, num_classes=WAY)
        axes = jax.tree.map(lambda _: 0, task)
        return jax.vmap(small(name), in_axes=(axes,))(task)

    tasks = [make_task(seed) for seed in range(3)]
    stacked = [
        np.stack([getattr(task, field) for task in tasks])
        for field in ("support", "support_labels", "query")
    ]
    got = batched(*stacked)
    for one, task in zip(got, tasks, strict=True):
        np.testing.assert_allclose(one, jitted(name)(task), rtol=1e-4, atol=2e-5)
    batched(*(x[::-1] for x in stacked))
    assert len(traces) == 1


def test_gradients_are_finite_with_padding_and_equal_rows(name):
    task = padded(make_task(), np.nan)
    task.query[0] = task.support[0]

    @jax.jit
    @jax.grad
    def gradient(rows):
        dist_qc = small(name)(task.replace(support=rows[0], query=rows[1]))
        return jnp.where(jnp.isfinite(dist_qc), dist_qc, 0).sum()

    for part in gradient((jnp.asarray(task.support), jnp.asarray(task.query))):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_dtype_in_is_dtype_out_with_nothing_promoted(name, dtype):
    task = make_task()
    support, query = (jnp.asarray(x, dtype) for x in (task.support, task.query))
    with jax.numpy_dtype_promotion("strict"):
        out = jax.eval_shape(small(name), task.replace(support=support, query=query))
    assert out.dtype == dtype


def test_double_precision_stays_so(name):
    with jax.enable_x64(True):
        task = make_task()
        double = task.replace(
            support=task.support.astype(float), query=task.query.astype(float)
        )
        with jax.numpy_dtype_promotion("strict"):
            assert jax.eval_shape(small(name), double).dtype == jnp.float64


def test_it_lowers_for_every_platform(name):
    lowered = jax.jit(small(name)).trace(make_task())
    for platform in ("cpu", "cuda", "tpu"):
        assert lowered.lower(lowering_platforms=(platform,)).as_text()


def test_a_title_says_when_balance_is_assumed(name):
    method = get_method(name)
    assert method.assumes_balance == ("assumes balance" in method.title)
