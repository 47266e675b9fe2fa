"""mAP and CMC by the protocol of person re-identification."""

import numpy as np
from oracles import retrieval

from rdc_jax.rerank import Labels, Scores, nearest_rows, score, summary


def make_gallery(queries=12, rows=40, seed=0):
    """Distances with ties, classes with distractors (-1), cameras."""
    rng = np.random.default_rng(seed)
    dist_qg = rng.integers(0, 9, (queries, rows)) / 8
    query = Labels(rng.integers(0, 6, queries), rng.integers(0, 2, queries))
    gallery = Labels(rng.integers(-1, 5, rows), rng.integers(0, 2, rows))
    return dist_qg, query, gallery


def test_scores_are_those_of_the_protocol():
    dist_qg, query, gallery = make_gallery()
    got = score(dist_qg, query, gallery)
    unanswered = 0
    for row, dist_g in enumerate(dist_qg):
        own = query.classes[row], query.cameras[row]
        want = retrieval.score(dist_g, *own, *gallery)
        unanswered += want is None
        found = got.precision[row], got.first[row]
        np.testing.assert_allclose(found, want or (np.nan, np.nan))
    assert 0 < unanswered < len(dist_qg)


def test_without_cameras_all_rows_of_the_class_count():
    dist_qg, query, gallery = make_gallery()
    nobody = Labels(query.classes, np.full(len(dist_qg), 9))
    want = score(dist_qg, nobody, gallery)
    got = score(dist_qg, Labels(query.classes), gallery)
    np.testing.assert_array_equal(got, want)


def test_classes_may_be_words():
    got = score(
        np.array([[0.1, 0.2, 0.3]]),
        Labels(np.array(["wren"])),
        Labels(np.array(["robin", "wren", "wren"])),
    )
    np.testing.assert_allclose(got.precision, [(1 / 2 + 2 / 3) / 2])


def test_broken_rows_are_not_ranked():
    dist_qg, query, gallery = make_gallery()
    dist_qg[:, 3] = np.nan
    kept = np.delete(np.arange(40), 3)
    want = score(dist_qg[:, kept], query, Labels(*(x[kept] for x in gallery)))
    np.testing.assert_array_equal(score(dist_qg, query, gallery), want)


def test_queries_without_an_answer_are_not_counted():
    scores = Scores(np.array([0.5, np.nan, 1.0]), np.array([3, np.nan, 1]))
    want = {"queries": 2, "mAP": 75, "rank1": 50, "rank5": 100}
    assert summary(scores, ranks=(1, 5)) == want
    assert summary(Scores(*np.full((2, 3), np.nan))) == {"queries": 0}


def test_nearest_rows_come_in_order_of_distance_and_then_of_place():
    dist_qg, *_ = make_gallery()
    ids_qr, dist_qr = nearest_rows(dist_qg, 7)
    order_qg = dist_qg.argsort(axis=1, kind="stable")
    np.testing.assert_array_equal(dist_qr, np.sort(dist_qg, axis=1)[:, :7])
    np.testing.assert_array_equal(ids_qr, order_qg[:, :7])
    assert nearest_rows(dist_qg, 99)[0].shape == dist_qg.shape
