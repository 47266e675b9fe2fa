"""Neighbour sets counted by plain loops, and warnings in plain words."""

import jax
import pytest
from evaluation.worlds import PARAMS, SPEC, make_features, make_judge, make_sampler
from oracles import rdc as oracle

from rdc_jax.core.params import RDCParams
from rdc_jax.evaluation import diagnostics
from rdc_jax.methods import Task

S = SPEC.support_size


@pytest.fixture(scope="module")
def task():
    feat_nd, labels_n = make_features()
    found = make_sampler(labels_n)(range(1))
    return feat_nd[found.indices[0]], found.labels[0]


@pytest.fixture(scope="module")
def counts(task):
    count = jax.jit(lambda f, y: diagnostics.count(f, y, S, SPEC.way, PARAMS))
    return dict(zip(diagnostics.COLUMNS, map(int, count(*task)), strict=True))


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


def test_beside_rdc_they_cost_next_to_nothing(task):
    """The compiler finds that the sets are those of RDC."""
    judge = make_judge("rdc_one_space")
    alone = judge.methods[0]

    def flops(fn):
        return jax.jit(fn).lower(*task).compile().cost_analysis()["flops"]

    def classify(feat_nd, labels_n):
        return alone.method(Task(feat_nd[:S], labels_n[:S], feat_nd[S:], SPEC.way))

    assert flops(judge) < 1.15 * flops(classify)


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
