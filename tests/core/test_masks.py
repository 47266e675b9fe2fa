"""Padding is inert, rows that are not finite are left out, queries are exchangeable."""

import jax
import numpy as np
import pytest
from core.episodes import make_episode

import rdc_jax
from rdc_jax import RDCParams
from rdc_jax.core.prototypes import predictions

pytestmark = pytest.mark.usefixtures("compiled_quickly")

KERNELS = ["tanh", "none", "linear", "gaussian", "polynomial", "sigmoid"]


def pad(x, rows, value):
    filler = np.full((rows, *x.shape[1:]), value, x.dtype)
    return np.concatenate([x, filler])


def padded_rdc(episode, params, *, extra_s, extra_q, value, num_classes=5):
    support, labels, query = episode
    s, q = len(support), len(query)
    return rdc_jax.rdc(
        pad(support, extra_s, value),
        pad(labels, extra_s, 0),
        pad(query, extra_q, value),
        num_classes=num_classes,
        params=params,
        support_mask=np.arange(s + extra_s) < s,
        query_mask=np.arange(q + extra_q) < q,
    )


@pytest.mark.parametrize("subspace", KERNELS)
@pytest.mark.parametrize("value", [0.0, 7.0, np.nan])
def test_padding_is_inert(subspace, value):
    # Of five tight classes, four directions hold the centres; the fifth would lie in
    # the noise, where float32 tells neither directions nor near neighbours apart.
    params = RDCParams(k=5, k2=3, dim=4, subspace=subspace)
    for seed in range(5):
        episode = make_episode(shot=2, query=4, d=40, seed=seed)
        s, q = len(episode[0]), len(episode[2])
        plain = rdc_jax.rdc(*episode, num_classes=5, params=params)
        padded = padded_rdc(episode, params, extra_s=3, extra_q=6, value=value)
        real = np.r_[:s, s + 3 : s + 3 + q]
        pairs = np.ix_(real, real)
        np.testing.assert_array_equal(padded.neighbours[pairs], plain.neighbours)
        for got, want in (
            (padded.distances[pairs], plain.distances),
            (padded.original[pairs], plain.original),
            (padded.class_distances[:q], plain.class_distances),
        ):
            np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_padding_comes_back_as_zeros(value):
    out = padded_rdc(make_episode(), RDCParams(), extra_s=2, extra_q=2, value=value)
    filler = np.r_[5, 6, -2, -1]
    for pairs in (out.distances, out.original, out.neighbours):
        assert not np.asarray(pairs)[filler].any()
        assert not np.asarray(pairs)[:, filler].any()
    assert (out.class_distances[-2:] == 0).all()


@pytest.mark.parametrize("params", [RDCParams(), RDCParams(k=2, k2=50)], ids=str)
def test_padding_is_inert_in_neighbourhoods_larger_than_the_task(params):
    episode = make_episode("relu", way=2, shot=1, query=2)
    plain = rdc_jax.rdc(*episode, num_classes=2, params=params)
    padded = padded_rdc(episode, params, extra_s=1, extra_q=2, value=7.0, num_classes=2)
    real = np.r_[:2, 3:7]
    pairs = np.ix_(real, real)
    np.testing.assert_array_equal(padded.neighbours[pairs], plain.neighbours)
    np.testing.assert_allclose(padded.distances[pairs], plain.distances, atol=1e-6)
    assert padded.neighbours.sum() == plain.neighbours.sum()


def test_padding_is_inert_where_zhongs_row_maximum_could_see_it():
    episode = make_episode(shot=2, query=4)
    params = RDCParams(distance="squared_max", subspace="none")
    plain = rdc_jax.rdc(*episode, num_classes=5, params=params)
    padded = padded_rdc(episode, params, extra_s=0, extra_q=9, value=0.0)
    n = len(plain.distances)
    np.testing.assert_allclose(padded.distances[:n, :n], plain.distances, atol=1e-6)


def test_padding_is_inert_in_the_iterated_subspace():
    episode = make_episode(shot=1, query=6, d=256)
    params = RDCParams(k=5, k2=3, dim=16, solver="iterate")
    plain = rdc_jax.rdc(*episode, num_classes=5, params=params)
    padded = padded_rdc(episode, params, extra_s=0, extra_q=12, value=1.0)
    n = len(plain.distances)
    # To the residual at which the iteration stops.
    np.testing.assert_allclose(padded.distances[:n, :n], plain.distances, atol=1e-5)


def test_episodes_of_different_way_share_one_compiled_function():
    params = RDCParams(k=4, k2=2, dim=8)

    @jax.jit
    def compiled(*episode, **masks):
        return rdc_jax.rdc(*episode, num_classes=5, params=params, **masks)

    for way, shot, query in [(5, 2, 3), (3, 1, 4), (2, 3, 2)]:
        support, labels, queries = make_episode(way=way, shot=shot, query=query)
        s, q = len(support), len(queries)
        out = compiled(
            pad(support, 10 - s, 0),
            pad(labels, 10 - s, 0),
            pad(queries, 20 - q, 0),
            support_mask=np.arange(10) < s,
            query_mask=np.arange(20) < q,
        )
        alone = rdc_jax.rdc(support, labels, queries, num_classes=way, params=params)
        np.testing.assert_allclose(
            out.class_distances[:q, :way], alone.class_distances, atol=1e-6
        )
        assert np.isinf(out.class_distances[:q, way:]).all()
    assert compiled._cache_size() == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_nobodys_neighbour(bad):
    support, labels, query = make_episode(shot=2, query=4)
    params = RDCParams(k=5, k2=3, dim=8)
    broken = query.copy()
    broken[3, 5] = bad
    out = rdc_jax.rdc(support, labels, broken, num_classes=5, params=params)
    without = rdc_jax.rdc(
        support, labels, np.delete(query, 3, 0), num_classes=5, params=params
    )
    others = np.delete(np.arange(20), 3)
    np.testing.assert_allclose(
        out.class_distances[others], without.class_distances, atol=1e-6
    )
    assert np.isnan(out.class_distances[3]).all()
    assert np.isnan(out.distances[13]).all() and not out.neighbours[13].any()


def test_a_support_that_is_not_finite_is_left_out_of_its_class():
    support, labels, query = make_episode(shot=2)
    support[1] = np.nan  # class 0 keeps one support, then loses both
    jitted = jax.jit(rdc_jax.npc, static_argnames="num_classes")
    everyone = np.ones(len(support), bool)
    out = rdc_jax.rdc(support, labels, query, num_classes=5, support_mask=everyone)
    assert np.isfinite(out.class_distances).all()
    assert np.isfinite(jitted(support, labels, query, num_classes=5)).all()
    support[0] = np.nan
    votes = jitted(support, labels, query, num_classes=5)
    assert np.isinf(votes[:, 0]).all() and np.isfinite(votes[:, 1:]).all()


def test_npc_ignores_padding():
    support, labels, query = make_episode(shot=2)
    plain = rdc_jax.npc(support, labels, query, num_classes=5)
    padded = rdc_jax.npc(
        pad(support, 4, 3.0),
        pad(labels, 4, 0),
        pad(query, 2, 3.0),
        num_classes=5,
        support_mask=np.arange(14) < 10,
        query_mask=np.arange(17) < 15,
    )
    np.testing.assert_allclose(padded[:15], plain, rtol=1e-6)
    assert (padded[15:] == 0).all()


@pytest.mark.parametrize("subspace", ["tanh", "gaussian"])
def test_permuting_queries_permutes_the_output(subspace):
    support, labels, query = make_episode(shot=2, query=5, d=40)
    order = np.random.default_rng(1).permutation(len(query))
    params = RDCParams(k=5, k2=3, dim=4, subspace=subspace)
    plain = rdc_jax.rdc(support, labels, query, num_classes=5, params=params)
    mixed = rdc_jax.rdc(support, labels, query[order], num_classes=5, params=params)
    np.testing.assert_allclose(
        mixed.class_distances, plain.class_distances[order], atol=1e-6
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_query_that_is_not_finite_is_answered_by_no_class(bad):
    support, labels, query = make_episode()
    query[3, 5] = bad
    out = rdc_jax.rdc(support, labels, query, num_classes=5)
    votes = rdc_jax.npc(support, labels, query, num_classes=5)
    for got, dist in (
        (out.predictions, out.class_distances),
        (predictions(votes), votes),
    ):
        assert got.dtype == np.int32 and got[3] == -1
        others = np.delete(np.arange(15), 3)
        np.testing.assert_array_equal(got[others], dist[others].argmin(axis=1))


def test_a_task_without_supports_predicts_no_class():
    support, labels, query = make_episode()
    out = rdc_jax.rdc(support, labels, query, 5, support_mask=np.zeros(5, bool))
    assert (out.predictions == -1).all()


def test_an_empty_class_is_no_prediction_and_hides_no_other():
    inf = np.inf
    got = predictions(np.array([[[inf, 2.0], [inf, np.nan]], [[3.0, 3.0], [inf, inf]]]))
    assert got.tolist() == [[1, -1], [0, -1]]  # of two episodes
