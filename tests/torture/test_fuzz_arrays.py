"""Whatever is in the arrays: the oracle's answer, a stated one, or a clear error.

Shapes are few, for each is compiled; values are drawn anew for each case.
"""

import functools

import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from oracles import rdc as oracle
from torture.fuzz import fuzz

import rdc_jax
from rdc_jax.core import calibration

WAY, SHOT, QUERY, D = 3, 2, 3, 6
S, N = WAY * SHOT, WAY * (SHOT + QUERY)
LABELS = np.repeat(np.arange(WAY), SHOT)
PARAMS = rdc_jax.RDCParams(k=4, k2=3, dim=4, subspace="none")
# Distances nearer than this may swap ranks in float32, and then all may differ.
_GAP = 1e-5
_LEAST = 1e-25  # Of numbers whose squares are still numbers in float32.

# Traced: concrete supports that are not finite are refused.
rdc = jax.jit(functools.partial(rdc_jax.rdc, num_classes=WAY, params=PARAMS))
npc = functools.partial(
    jax.jit(rdc_jax.npc, static_argnames=("num_classes", "normalize")), num_classes=WAY
)


@st.composite
def features(draw, rows=N):
    """Rows at all scales, some of them equal, parallel or zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    feat_nd = rng.standard_normal((rows, D))
    if draw(st.booleans()):
        feat_nd = np.maximum(feat_nd, 0)
    for _ in range(draw(st.integers(0, 3))):
        i, j = rng.integers(rows, size=2)
        feat_nd[i] = draw(st.sampled_from([0.0, 1.0, 0.5, 4.0])) * feat_nd[j]
    scale = draw(st.sampled_from([1.0, 1e-12, 1e-3, 1e4, 1e15]))
    return (scale * feat_nd).astype(np.float32)


wild = st.floats(width=32) | st.sampled_from([np.nan, np.inf, -np.inf, 3e38, 1e-40])


@st.composite
def with_wild_values(draw, rows=N):
    """Features with some of their numbers replaced by any float at all."""
    feat_nd = draw(features(rows))
    for _ in range(draw(st.integers(1, 6))):
        row, column = draw(st.integers(0, rows - 1)), draw(st.integers(0, D - 1))
        feat_nd[row, column] = draw(wild)
    return feat_nd


def ranks_are_certain(feat_nd):
    """No two distances of a row are nearly the same, but to rows that are equal."""
    unit_nd = oracle.normalise(feat_nd)
    dist_nn = oracle.distances(unit_nd)
    order = np.argsort(dist_nn, axis=1, kind="stable")
    close = np.diff(np.take_along_axis(dist_nn, order, 1), axis=1) <= _GAP
    equal = (unit_nd[order[:, 1:]] == unit_nd[order[:, :-1]]).all(axis=2)
    return (equal | ~close).all()


def same(got, want, tolerance=2e-5):
    np.testing.assert_allclose(got, want, atol=tolerance, rtol=tolerance)


@fuzz(features())
def test_rdc_is_the_oracle_s(feat_nd):
    got = rdc(feat_nd[:S], LABELS, feat_nd[S:])
    assert np.isfinite(got.class_distances).all() and (got.distances >= 0).all()
    if ranks_are_certain(feat_nd):
        want = oracle.rdc(feat_nd[:S], LABELS, feat_nd[S:], WAY, PARAMS)
        np.testing.assert_array_equal(got.neighbours, want[3])
        for mine, theirs in zip(got[:3], want[:3], strict=True):
            same(mine, theirs)


@fuzz(features())
def test_calibrated_distances_are_the_oracle_s(feat_nd):
    got = np.asarray(rdc_jax.calibrated_distances(feat_nd, PARAMS))
    np.testing.assert_array_equal(np.diag(got), 0)
    if ranks_are_certain(feat_nd):
        same(got, oracle.calibrate(feat_nd, PARAMS)[1])


@fuzz(features(), st.booleans())
def test_npc_is_the_oracle_s(feat_nd, normalize):
    got = npc(feat_nd[:S], LABELS, feat_nd[S:], normalize=normalize)
    want = oracle.npc(
        feat_nd[:S].astype(float), LABELS, feat_nd[S:].astype(float), WAY, normalize
    )
    size = 1 if normalize else np.abs(feat_nd).max() + _LEAST
    same(got / size, want / size)


@fuzz(with_wild_values())
def test_rows_that_are_not_finite_harm_no_other(feat_nd):
    got = rdc(feat_nd[:S], LABELS, feat_nd[S:])
    finite_n = np.isfinite(feat_nd).all(axis=1)
    bad = ~finite_n
    assert np.isnan(np.asarray(got.distances)[bad]).all()
    assert not np.asarray(got.neighbours)[bad].any()
    assert not np.asarray(got.neighbours)[:, bad].any()
    assert np.isfinite(np.asarray(got.distances)[np.ix_(finite_n, finite_n)]).all()
    votes_qc = np.asarray(got.class_distances)
    assert not np.isnan(votes_qc[finite_n[S:]]).any()
    assert np.isnan(votes_qc[bad[S:]]).all()


@fuzz(with_wild_values())
def test_huge_and_tiny_numbers_are_numbers(feat_nd):
    """Where all are finite, the answer is that of exact arithmetic."""
    feat_nd = np.nan_to_num(feat_nd, nan=1.0, posinf=3e38, neginf=-3e38)
    if ranks_are_certain(feat_nd.astype(float)):
        got = rdc_jax.calibrated_distances(feat_nd, PARAMS)
        same(got, oracle.calibrate(feat_nd.astype(float), PARAMS)[1])


masks = st.lists(st.booleans(), min_size=N, max_size=N).map(np.array)


@fuzz(features(), masks)
def test_what_is_masked_is_not_there(feat_nd, real_n):
    real_n[0] = real_n[S] = True  # an episode has supports and queries
    padded = np.where(real_n[:, None], feat_nd, np.nan).astype(np.float32)
    got = rdc(
        *(padded[:S], LABELS, padded[S:]),
        support_mask=real_n[:S],
        query_mask=real_n[S:],
    )
    kept = feat_nd[real_n]
    if ranks_are_certain(kept):
        size = int(real_n[:S].sum())
        labels = LABELS[real_n[:S]]
        want = oracle.rdc(kept[:size], labels, kept[size:], WAY, PARAMS)
        same(np.asarray(got.class_distances)[real_n[S:]], want[0])
        same(np.asarray(got.distances)[np.ix_(real_n, real_n)], want[1])


@st.composite
def distances(draw):
    """A symmetric matrix of distances, with zeros on its diagonal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = rng.exponential(draw(st.sampled_from([0.01, 1.0, 10.0])), (8, 8))
    d[rng.random((8, 8)) < draw(st.sampled_from([0.0, 0.5, 1.0]))] = 0.5
    return (np.triu(d, 1) + np.triu(d, 1).T).astype(np.float32)


weights = st.floats(0, 4, width=32)
kl_loss = jax.jit(rdc_jax.kl_loss)


@fuzz(distances(), distances(), weights, st.floats(0.125, 8, width=32))
def test_the_loss_is_the_oracle_s(original, target, alpha, tau):
    member = (original < 0.5) | np.eye(8, dtype=bool)
    got = kl_loss(original, target, member, alpha, tau)
    want = oracle.kl_loss(
        *(x.astype(float) for x in (original, target)), member, alpha, tau
    )
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * max(1, tau**2))


one_npc = functools.partial(rdc_jax.npc, num_classes=WAY)
mapped = {
    chunk: jax.jit(rdc_jax.over_episodes(one_npc, chunk))
    for chunk in (1, 2, 3, 4, None)
}


@fuzz(st.lists(features(), min_size=4, max_size=4), st.sampled_from([*mapped]))
def test_chunks_of_episodes_do_not_show(episodes, chunk):
    x = np.stack(episodes)
    labels = np.tile(LABELS, (4, 1))
    got = mapped[chunk](x[:, :S], labels, x[:, S:])
    want = [npc(one[:S], LABELS, one[S:]) for one in episodes]
    same(got, np.stack(want), 1e-6)


sizes = st.integers(0, 3)
shapes = st.lists(sizes, max_size=3).map(tuple)
dtypes = st.sampled_from(["float32", "int32", "bool", "complex64", "uint8", "bfloat16"])
likely = st.tuples(sizes, sizes)


@pytest.mark.usefixtures("no_type_checks")
@fuzz(st.data())
def test_any_shape_and_dtype_is_served_or_named(data):
    """Traced only, as an outer jit does: nothing is compiled."""
    draw = data.draw
    support, query = (draw(likely | shapes, label=x) for x in ("support", "query"))
    labels = draw(st.just(support[:1]) | shapes, label="labels")
    kinds = [draw(dtypes) for _ in range(3)]
    task = [
        jax.ShapeDtypeStruct(shape, kind)
        for shape, kind in zip((support, labels, query), kinds, strict=True)
    ]
    num_classes = draw(st.integers(-1, 3), label="num_classes")
    for method in (calibration.rdc, rdc_jax.npc):
        call = functools.partial(method, num_classes=num_classes)
        try:
            out = jax.eval_shape(call, *task)
        except (ValueError, TypeError) as error:
            reason = str(error)
        else:
            reason = "served"
            votes = out if method is rdc_jax.npc else out.class_distances
            assert votes.shape == (query[0], num_classes)
        assert reason
