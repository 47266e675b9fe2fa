"""Re-ranking of a gallery: what it equals, and what must not change it."""

import dataclasses
import inspect
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from core.episodes import make_episode
from oracles import zhong
from oracles.rdc import normalise

import rdc_jax
from rdc_jax.rerank import ZHONG, blocks, build_index
from rdc_jax.rerank.index import check_features
from rdc_jax.rerank.nearest import reach
from rdc_jax.rerank.rows import make_columns

pytestmark = pytest.mark.usefixtures("optimised")


def make_rows(kind="clustered", **sizes):
    """(query, gallery)."""
    gallery, _, query = make_episode(kind, **{"shot": 6, "query": 4, **sizes})
    return query, gallery


def calibrated(query, gallery, params):
    together = rdc_jax.calibrated_distances(np.concatenate([query, gallery]), params)
    return np.asarray(together)[: len(query), len(query) :]


def tied_rows(n, seed=0):
    """Rows of four ones and minus ones: many are equally far, without rounding."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 8), np.float32)
    for row in x:
        row[rng.choice(8, 4, replace=False)] = rng.choice([-1, 1], 4)
    return x


@pytest.mark.parametrize("kind", ["random", "clustered", "relu", "tied"])
@pytest.mark.parametrize(("k", "k2", "lam"), [(20, 6, 0.3), (5, 1, 0.7), (7, 9, 0.0)])
def test_distances_are_those_of_zhong(kind, k, k2, lam):
    rows = tied_rows(50) if kind == "tied" else np.concatenate(make_rows(kind))
    want = zhong.rerank(normalise(rows), k, k2, lam)[:20, 20:]
    got = rdc_jax.rerank(rows[:20], rows[20:], k=k, k2=k2, lam=lam)
    np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("kind", ["clustered", "duplicated", "equal"])
@pytest.mark.parametrize(
    "readings",
    [
        {},
        {"distance": "euclidean"},
        {"base": "nearest"},
        {"overlap": ">="},
        {"normalize": False, "distance": "euclidean"},
    ],
    ids=str,
)
def test_readings_give_what_calibrated_distances_give(kind, readings):
    query, gallery = make_rows(kind)
    params = dataclasses.replace(ZHONG, k=6, k2=3, lam=0.4, **readings)
    got = rdc_jax.rerank(query, gallery, 6, 3, 0.4, params=params)
    np.testing.assert_allclose(got, calibrated(query, gallery, params), atol=1e-6)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (4, 2), (30, 5)], ids=str)
def test_fewer_rows_than_neighbours(sizes):
    rows = np.concatenate(make_rows("random"))
    query, gallery = rows[: sizes[0]], rows[sizes[0] : sum(sizes)]
    want = calibrated(query, gallery, ZHONG)
    np.testing.assert_allclose(rdc_jax.rerank(query, gallery), want, atol=1e-6)


def test_more_equal_rows_than_candidates():
    """Copies hide each other from a search for candidates; the proof notices."""
    query, gallery = make_rows("random", way=4)
    gallery = np.concatenate([gallery, np.repeat(gallery[:1], 40, axis=0), query[:2]])
    params = dataclasses.replace(ZHONG, k=4, k2=3, distance="euclidean")
    got = rdc_jax.rerank(query, gallery, 4, 3, params=params)
    np.testing.assert_allclose(got, calibrated(query, gallery, params), atol=1e-6)


def test_a_wide_gallery_is_searched_in_groups():
    rows = np.random.default_rng(0).standard_normal((2600, 6)).astype(np.float32)
    index = build_index(rows, dataclasses.replace(ZHONG, k=1, k2=1))
    unit = normalise(rows)
    squared = ((unit[:, None] - unit[None]) ** 2).sum(-1)
    np.testing.assert_array_equal(index.ranks.ids, squared.argsort(axis=1)[:, :2])
    np.testing.assert_allclose(index.ranks.largest, squared.max(axis=1), rtol=1e-6)


def test_queries_leave_far_rows_as_they_were():
    """Most of a gallery has no query among its neighbours."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((12, 16))
    rows = centres[np.arange(240) % 12] + 0.05 * rng.standard_normal((240, 16))
    query, gallery = rows[:24:12].astype(np.float32), rows[24:].astype(np.float32)
    params = dataclasses.replace(ZHONG, k=6, k2=3)
    got = rdc_jax.rerank(query, gallery, 6, 3)
    np.testing.assert_allclose(got, calibrated(query, gallery, params), atol=1e-6)
    index = build_index(gallery, params)
    unit = normalise(query).astype(np.float32)
    columns = make_columns((unit, np.ones(2, bool)))
    reached_g, _ = reach(index.feat_gd, index.ranks.squared[:, -1], columns)
    assert 0 < reached_g.sum() <= 20


def test_an_index_answers_any_queries():
    query, gallery = make_rows("relu")
    index = build_index(gallery, dataclasses.replace(ZHONG, k=6, k2=3))
    for some in (query[:1], query[1:], query):
        want = rdc_jax.rerank(some, gallery, k=6, k2=3)
        np.testing.assert_array_equal(index.rerank(some), want)
    want = rdc_jax.rerank(query, gallery, k=6, k2=3, lam=0.8)
    np.testing.assert_array_equal(index.rerank(query, lam=0.8), want)


def test_distances_before_are_those_of_weight_one():
    query, gallery = make_rows()
    index = build_index(gallery)
    before = np.concatenate([before for before, _ in index.blocks(query)])
    np.testing.assert_array_equal(before, index.rerank(query, lam=1.0))


def test_blocks_do_not_change_the_distances(monkeypatch):
    query, gallery = make_rows("relu")
    whole = rdc_jax.rerank(query, gallery, k=6)
    monkeypatch.setattr(blocks, "_NUMBERS", 2000)
    assert len([*build_index(gallery, ZHONG).blocks(query)]) > 1
    np.testing.assert_allclose(rdc_jax.rerank(query, gallery, k=6), whole, atol=1e-7)


def test_the_order_of_queries_does_not_matter():
    query, gallery = make_rows("relu")
    order = np.random.default_rng(0).permutation(len(query))
    got = rdc_jax.rerank(query[order], gallery, k=6)
    want = rdc_jax.rerank(query, gallery, k=6)[order]
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_rows_that_are_not_finite_are_nobodys_neighbour():
    query, gallery = make_rows()
    query[3, 0], gallery[5, 1], gallery[-1, 2] = np.nan, np.inf, np.nan
    params = dataclasses.replace(ZHONG, k=6, k2=3)
    want = calibrated(query, gallery, params)
    got = rdc_jax.rerank(query, gallery, 6, 3)
    np.testing.assert_allclose(got, want, atol=1e-6)
    others = rdc_jax.rerank(
        np.delete(query, 3, 0), np.delete(gallery, [5, -1], 0), 6, 3
    )
    got = np.delete(np.delete(got, 3, 0), [5, -1], 1)
    np.testing.assert_allclose(got, others, atol=1e-6)
    assert np.isnan(rdc_jax.rerank(query, np.full_like(gallery, np.nan))).all()


def test_half_precision_features_are_computed_in_float32():
    query, gallery = (jnp.asarray(x, jnp.bfloat16) for x in make_rows())
    got = rdc_jax.rerank(query, gallery, k=6)
    assert got.dtype == np.float32
    widened = (np.asarray(x, np.float32) for x in (query, gallery))
    np.testing.assert_array_equal(got, rdc_jax.rerank(*widened, k=6))


def test_double_precision_where_jax_has_it():
    query, gallery = (x.astype(np.float64) for x in make_rows("relu"))
    assert rdc_jax.rerank(query, gallery).dtype == np.float32
    with jax.enable_x64(True):
        got = rdc_jax.rerank(query, gallery, k=6)
    rows = normalise(np.concatenate([query, gallery]))
    want = zhong.rerank(rows, 6, 6, 0.3)[: len(query), len(query) :]
    np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize(
    ("query", "gallery", "message"),
    [
        ((3,), (4, 2), r"\[q, d\] and \[g, d\], got \(\(3,\), \(4, 2\)\)"),
        ((0, 2), (4, 2), r"got \(\(0, 2\)"),
        ((3, 5), (4, 2), "of one length, got 5 and 2"),
    ],
)
def test_arrays_that_do_not_fit_are_named(query, gallery, message):
    with pytest.raises(ValueError, match=message):
        check_features(np.zeros(query), np.zeros(gallery))


@pytest.mark.devices8
def test_eight_devices_give_what_one_gives(monkeypatch):
    query, gallery = make_rows("relu", way=9)
    assert jax.device_count() == 8
    eight = rdc_jax.rerank(query, gallery)
    monkeypatch.setattr(jax, "devices", lambda *_: jax.local_devices()[:1])
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    np.testing.assert_array_equal(rdc_jax.rerank(query, gallery), eight)


def test_the_package_is_the_function():
    """Whatever was imported first; and nothing is imported before it is used."""
    code = """if True:
        import sys
        import rdc_jax
        assert not any(name.startswith("rdc_jax.rerank") for name in sys.modules)
        lazy = rdc_jax.rerank
        import rdc_jax.rerank
        from rdc_jax import rerank
        import rdc_jax.rerank.index
        assert lazy is rdc_jax.rerank is rerank is sys.modules["rdc_jax.rerank"]
        import numpy as np
        assert rdc_jax.rerank(np.eye(2, 3), np.eye(4, 3)).shape == (2, 4)
    """
    subprocess.run([sys.executable, "-c", code], check=True)
    names = [*inspect.signature(rdc_jax.rerank).parameters]
    assert names == ["query", "gallery", "k", "k2", "lam", "params"]
