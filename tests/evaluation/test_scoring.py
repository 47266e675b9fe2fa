"""What is counted of one task, and what labels of queries can reach."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from evaluation.worlds import PARAMS, SPEC, counts_of, make_task

from rdc_jax import methods
from rdc_jax.evaluation.scoring import Wanted, judge_on_features
from rdc_jax.runtime.errors import UserError


def test_right_answers_are_counted():
    task, labels_q = make_task()
    for name in ("npc", "npc_l2"):
        dist_qc = jax.jit(methods.get_method(name))(task)
        right = sum(
            int(dist_qc[q].argmin()) == int(labels_q[q]) for q in range(SPEC.query_size)
        )
        assert jax.jit(counts_of(name))(task, labels_q)[0] == right


def test_answers_and_distances_are_kept():
    task, labels_q = make_task()
    found = tuple(methods.get_method(name, rdc=PARAMS) for name in ("npc", "rdc"))
    judged = jax.jit(judge_on_features, static_argnums=(0, 1, 2))(
        *(found, PARAMS, Wanted(distances=True), None, task, labels_q)
    )
    for place, method in enumerate(found):
        dist_qc = jax.jit(method)(task)
        np.testing.assert_array_equal(judged.answers[place], dist_qc.argmin(axis=1))
        np.testing.assert_allclose(judged.distances[place], dist_qc, rtol=1e-5)
        right = (judged.answers[place] == labels_q).sum()
        assert judged.counts[place] == right


def test_queries_that_are_not_finite_are_counted_wrong():
    task, labels_q = make_task()
    lost_q = labels_q == 0  # Class 0 is what argmin would give them.
    dist_qc = methods.get_method("npc_l2")(task)
    right_q = (dist_qc.argmin(axis=1) == labels_q) & ~lost_q
    broken = task.replace(query=jnp.where(lost_q[:, None], jnp.nan, task.query))
    assert counts_of("npc_l2")(broken, labels_q)[0] == right_q.sum()


def test_labels_of_queries_reach_nothing_but_the_counts():
    """Methods are given the same arrays whatever the labels of queries are."""
    seen = []

    class Spy(methods.FeatureMethod):
        def class_distances(self, task):
            seen.append(jax.tree.map(np.asarray, task))
            return jnp.zeros((len(task.query), task.num_classes))

    task, labels_q = make_task()
    counts = [
        judge_on_features((Spy(),), None, Wanted(), None, task, labels).counts[0]
        for labels in (labels_q, jnp.zeros_like(labels_q))
    ]
    jax.tree.map(np.testing.assert_array_equal, *seen)
    assert counts == [SPEC.query, SPEC.query_size]


def test_answers_are_the_same_whatever_the_labels_of_queries():
    count = jax.jit(counts_of("npc", "rdc", diagnosed=PARAMS))
    task, labels_q = make_task()
    right = sum(  # Each query is right under exactly one of these.
        np.asarray(count(task, jnp.full_like(labels_q, c))[:2]) for c in range(SPEC.way)
    )
    np.testing.assert_array_equal(right, SPEC.query_size)


def test_a_method_that_gives_the_wrong_shape_is_told():
    class Wrong(methods.FeatureMethod):
        name = "wrong"

        def class_distances(self, task):
            return task.query

    task, labels_q = make_task()
    with pytest.raises(UserError, match=r"wrong gives \(20, 24\) for \(20, 4\)"):
        judge_on_features((Wrong(),), None, Wanted(), None, task, labels_q)
