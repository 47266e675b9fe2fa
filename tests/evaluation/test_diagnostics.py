"""Neighbour sets counted by plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evaluation.worlds import PARAMS, SPEC, counts_of, make_task
from oracles import rdc as oracle
from scipy import stats

from rdc_jax.core.params import RDCParams
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.evaluation import diagnostics

S = SPEC.support_size


@pytest.fixture(scope="module")
def task():
    """Features and labels of all images."""
    task, labels_q = make_task()
    feat_nd = np.concatenate([task.support, task.query])
    return feat_nd, np.concatenate([task.support_labels, labels_q])


@pytest.fixture(scope="module")
def counts():
    count = jax.jit(lambda task, labels_q: diagnostics.count(task, labels_q, PARAMS))
    return dict(zip(diagnostics.COLUMNS, map(int, count(*make_task())), strict=True))


def members(sets, labels):
    """Members of queries' sets, and those of the query's own class."""
    pairs = [(i, j) for i in range(S, len(labels)) for j in sets[i] if j != i]
    return len(pairs), sum(labels[i] == labels[j] for i, j in pairs)


def test_members_before_expansion(task, counts):
    feat_nd, labels_n = task
    ranks = oracle.rankings(oracle.distances(oracle.normalise(feat_nd)))
    rows = range(len(labels_n))
    sets = [oracle.reciprocal(ranks, i, PARAMS.k + 1) for i in rows]
    expected = members(sets, labels_n)
    assert (counts["members_before"], counts["same_before"]) == expected


def test_members_after_expansion(task, counts):
    feat_nd, labels_n = task
    _, _, sets = oracle.calibrate(feat_nd, PARAMS, labels_n[:S].tolist())
    expected = members(sets, labels_n)
    assert (counts["members_after"], counts["same_after"]) == expected
    assert counts["members_after"] > counts["members_before"]


def test_pairs_that_share_no_neighbour(task, counts):
    feat_nd, labels_n = task
    alone = RDCParams(k=PARAMS.k, k2=PARAMS.k2, lam=0.0)
    _, jaccard_nn, _ = oracle.calibrate(feat_nd, alone, labels_n[:S].tolist())
    assert counts["jaccard_one"] == (jaccard_nn[S:, :S] == 1).sum() > 0


def test_hubs_are_those_of_plain_loops(task, counts):
    feat_nd, _ = task
    ranks = oracle.rankings(oracle.distances(oracle.normalise(feat_nd)))
    times = np.zeros(len(feat_nd), int)
    for i, ranking in enumerate(ranks):
        for j in [j for j in ranking if j != i][: PARAMS.k]:
            times[j] += 1
    assert counts["hubs"] == (times >= 2 * PARAMS.k).sum() > 0
    assert counts["anti_hubs"] == (times == 0).sum() > 0
    assert counts["skewness"] == pytest.approx(1000 * stats.skew(times), abs=0.6)


def test_queries_of_no_class_have_no_sets():
    task, labels_q = make_task()
    count = jax.jit(lambda task, labels_q: diagnostics.count(task, labels_q, PARAMS))
    whole, *parts = (
        dict(zip(diagnostics.COLUMNS, map(int, count(task, labels)), strict=True))
        for labels in (
            labels_q,
            *(
                jnp.where(jnp.arange(SPEC.query_size) < 7, a, b)
                for a, b in ((labels_q, -1), (-1, labels_q))
            ),
        )
    )
    for name in ("members_before", "members_after", "jaccard_one"):
        assert whole[name] == sum(part[name] for part in parts)
    for name in ("same_before", "same_after"):
        assert whole[name] > sum(part[name] for part in parts) > 0
    assert whole["hubs"] == parts[0]["hubs"]


def test_beside_rdc_they_cost_next_to_nothing():
    """The compiler finds that the sets are those of RDC."""

    def flops(fn):
        return jax.jit(fn).lower(*make_task()).compile().cost_analysis()["flops"]

    both, alone = (counts_of("rdc_one_space", diagnosed=p) for p in (PARAMS, None))
    assert flops(both) < 1.2 * flops(alone)


def columns(*totals):
    """The counts of two tasks, with these sums."""
    halves = ([total // 2, total - total // 2] for total in totals)
    return dict(zip(diagnostics.COLUMNS, map(np.array, halves), strict=True))


def test_counts_become_shares_and_means():
    spec = TaskSpec(way=5, shot=1, query=2)  # 10 queries and 50 pairs a task.
    found = diagnostics.neighbour_sets(columns(40, 30, 80, 40, 25, 3000, 8, 4), spec, 5)
    assert found == {
        "purity_before": 75.0,
        "purity_after": 50.0,
        "neighbours_before": 2.0,
        "neighbours_after": 4.0,
        "jaccard_one": 25.0,
        "hub_skewness": 1.5,
        "hubs": 20.0,  # Of two tasks of 5, 10 and 5 images.
        "anti_hubs": 10.0,
    }


def test_sets_without_members_have_no_purity():
    found = diagnostics.neighbour_sets(columns(0, 0, 0, 0, 0, 0, 0, 0), SPEC)
    assert found["purity_before"] is None and found["purity_after"] is None
