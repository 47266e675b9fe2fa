"""Neighbour sets counted by plain loops, and warnings in plain words."""

import jax
import numpy as np
import pytest
from evaluation.worlds import PARAMS, SPEC, counts_of, make_task
from oracles import rdc as oracle

from rdc_jax.core.params import RDCParams
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


def test_beside_rdc_they_cost_next_to_nothing():
    """The compiler finds that the sets are those of RDC."""

    def flops(fn):
        return jax.jit(fn).lower(*make_task()).compile().cost_analysis()["flops"]

    both, alone = (counts_of("rdc_one_space", diagnosed=p) for p in (PARAMS, None))
    assert flops(both) < 1.15 * flops(alone)


def test_counts_become_shares_and_means():
    totals = dict(zip(diagnostics.COLUMNS, (40, 30, 80, 40, 25), strict=True))
    assert diagnostics.summarise(totals, queries=20, pairs=100) == {
        "purity_before": 75.0,
        "purity_after": 50.0,
        "neighbours_before": 2.0,
        "neighbours_after": 4.0,
        "jaccard_one": 25.0,
    }


def test_sets_without_members_have_no_purity():
    totals = dict.fromkeys(diagnostics.COLUMNS, 0)
    summary = diagnostics.summarise(totals, queries=20, pairs=100)
    assert summary["purity_before"] is None
    (warning,) = diagnostics.set_warnings("cub 1-shot", summary)
    assert "no query has a neighbour" in warning


def test_a_k_beyond_the_class_is_told():
    (warning,) = diagnostics.task_warnings(RDCParams(k=10), shot=1, query=5)
    assert "k=10" in warning and "only 5 others" in warning
    assert not diagnostics.task_warnings(RDCParams(k=5), shot=1, query=5)


GOOD = {"purity_before": 80.0, "purity_after": 78.0, "jaccard_one": 60.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"purity_after": 60.0}, "lowers the purity of neighbour sets from 80% to 60%"),
        ({"jaccard_one": 97.0}, "97% of query-support pairs share no neighbour"),
    ],
)
def test_bad_neighbour_sets_are_told(change, message):
    assert not diagnostics.set_warnings("cub 1-shot", GOOD)
    (warning,) = diagnostics.set_warnings("cub 1-shot", {**GOOD, **change})
    assert warning.startswith("cub 1-shot: ") and message in warning


def test_only_losses_of_transductive_methods_beyond_chance_are_told():
    row = {"dataset": "isic", "shot": 5, "gain_ci95": 0.3}
    rows = [
        {"dataset": "isic", "shot": 5, "method": "npc_l2", "transductive": False},
        {**row, "method": "npc", "transductive": False, "gain": -4.0},
        *(
            {**row, "method": "rdc", "transductive": True, "gain": gain}
            for gain in (0.5, -0.2, -0.5)
        ),
        {**row, "method": "one task", "transductive": True, "gain": -9.0}
        | {"gain_ci95": None},
    ]
    assert diagnostics.gain_warnings(rows, "npc_l2") == [
        "isic 5-shot: rdc loses 0.50 ± 0.30 points to npc_l2 on the same tasks: "
        "do not use it there"
    ]
