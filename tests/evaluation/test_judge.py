"""What is counted for one episode, and what labels of queries can reach."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evaluation.worlds import PARAMS, SPEC, make_features, make_judge, make_sampler

from rdc_jax import methods
from rdc_jax.evaluation.judge import Judge
from rdc_jax.evaluation.options import Entry
from rdc_jax.runtime.errors import UserError


@functools.cache
def make_task(number=0):
    feat_nd, labels_n = make_features()
    task = make_sampler(labels_n)(range(number, number + 1))
    return jnp.asarray(feat_nd[task.indices[0]]), jnp.asarray(task.labels[0])


def test_right_answers_are_counted():
    feat_nd, labels_n = make_task()
    s = SPEC.support_size
    for name in ("npc", "npc_l2"):
        judge = make_judge(name)
        classify = jax.jit(judge.methods[0].method)
        task = methods.Task(feat_nd[:s], labels_n[:s], feat_nd[s:], SPEC.way)
        dist_qc = classify(task)
        right = sum(
            int(dist_qc[q].argmin()) == int(labels_n[s + q])
            for q in range(SPEC.query_size)
        )
        assert jax.jit(judge)(feat_nd, labels_n)[0] == right


def test_queries_that_are_not_finite_are_counted_wrong():
    feat_nd, labels_n = make_task()
    s = SPEC.support_size
    # Of class 0, which argmin would give them.
    lost_n = (labels_n == 0) & (jnp.arange(len(labels_n)) >= s)
    judge = make_judge("npc_l2")
    task = methods.Task(feat_nd[:s], labels_n[:s], feat_nd[s:], SPEC.way)
    dist_qc = judge.methods[0].method(task)
    right_q = (dist_qc.argmin(axis=1) == labels_n[s:]) & ~lost_n[s:]
    broken_nd = jnp.where(lost_n[:, None], jnp.nan, feat_nd)
    assert judge(broken_nd, labels_n)[0] == right_q.sum()


def test_labels_of_queries_reach_nothing_but_the_counts():
    """Methods are given the same arrays whatever the labels of queries are."""
    seen = []

    class Spy(methods.FeatureMethod):
        def class_distances(self, task):
            seen.append(jax.tree.map(np.asarray, task))
            return jnp.zeros((len(task.query), task.num_classes))

    spying = Entry("spy", Spy())
    feat_nd, labels_n = make_task()
    other_n = labels_n.at[SPEC.support_size :].set(0)
    counts = [
        Judge((spying,), SPEC.way, PARAMS, SPEC.support_size)(feat_nd, labels)
        for labels in (labels_n, other_n)
    ]
    jax.tree.map(np.testing.assert_array_equal, *seen)
    assert counts[0][0] == SPEC.query and counts[1][0] == SPEC.query_size


def test_answers_are_the_same_whatever_the_labels_of_queries():
    judge = make_judge("npc", "rdc")
    count = jax.jit(judge)
    feat_nd, labels_n = make_task()
    queries = slice(SPEC.support_size, None)
    right = np.zeros(len(judge.methods))
    for c in range(SPEC.way):  # each query is right under exactly one of these
        counts = count(feat_nd, labels_n.at[queries].set(c))
        right += np.asarray(counts[: len(judge.methods)])
    np.testing.assert_array_equal(right, SPEC.query_size)


def test_columns_name_the_counts():
    assert make_judge("npc", "npc_l2").columns == ("npc", "npc_l2")
    columns = make_judge("npc", "rdc").columns
    assert columns[:3] == ("npc", "rdc", "members_before")
    (size,) = jax.eval_shape(make_judge("npc", "rdc"), *make_task()).shape
    assert size == len(columns)


def test_a_method_that_gives_the_wrong_shape_is_told():
    class Wrong(methods.FeatureMethod):
        uses_neighbours = False

        def class_distances(self, task):
            return task.query

    judge = Judge((Entry("wrong", Wrong()),), SPEC.way, PARAMS, SPEC.support_size)
    with pytest.raises(UserError, match=r"wrong gives \(20, 24\) for \(20, 4\)"):
        jax.eval_shape(judge, *make_task())
