"""RDCClassifier on folders, pictures and features."""

import pickle

import numpy as np
import pytest
from predict.test_task import make_task
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rdc_jax import RDCParams, models
from rdc_jax.predict import RDCClassifier
from rdc_jax.predict.pictures import find_queries
from rdc_jax.runtime.errors import UserError

PARAMS = RDCParams(k=5, k2=3, dim=8)


def brightness(images):
    """A backbone of one's own: mean colours of the four quarters."""
    b, h, w, _ = images.shape
    quarters = np.asarray(images).reshape(b, 2, h // 2, 2, w // 2, 3)
    return quarters.mean(axis=(2, 4)).reshape(b, 12)


def truth_of(folders):
    return [folders.truth[path.name] for path in find_queries(folders.query)]


def test_folders_give_class_names(folders, checkpoint):
    classifier = RDCClassifier(checkpoint, params=PARAMS).fit(folders.support)
    assert classifier.classes_.tolist() == [f"class{i}" for i in range(5)]
    assert classifier.n_features_in_ == 8
    predicted = classifier.predict(folders.query)
    assert (predicted == truth_of(folders)).mean() > 0.4  # chance is 0.2
    assert classifier.predict_proba(folders.query).shape == (35, 5)


def test_any_function_is_a_backbone(folders):
    classifier = RDCClassifier(brightness, image_size=16, params=PARAMS)
    classifier.fit(folders.support)
    assert classifier.n_features_in_ == 12
    assert (classifier.predict(folders.query) == truth_of(folders)).mean() > 0.4


def test_normalize_sees_pixels_and_replaces_imagenets():
    seen = []

    def normalize(images):
        seen.append((images.dtype, images.shape[1:], int(images.max())))
        return images / 255.0

    pictures = np.full((2, 30, 20, 3), 255, np.uint8)
    RDCClassifier(brightness, image_size=16, normalize=normalize).fit(pictures, [0, 1])
    assert seen == [(np.uint8, (16, 16, 3), 255)]


def test_pictures_in_arrays_equal_pictures_in_files(folders, checkpoint):
    from rdc_jax.data.decode import read_image

    pictures = np.stack([read_image(path) for path in find_queries(folders.query)])
    classifier = RDCClassifier(checkpoint, params=PARAMS).fit(folders.support)
    np.testing.assert_array_equal(
        classifier.predict_proba(folders.query), classifier.predict_proba(pictures)
    )


def test_a_loaded_backbone_is_as_good_as_its_path(folders, checkpoint):
    by_path = RDCClassifier(checkpoint, params=PARAMS).fit(folders.support)
    backbone = models.load_backbone(checkpoint)
    by_hand = clone(RDCClassifier(backbone, params=PARAMS)).fit(folders.support)
    np.testing.assert_array_equal(
        by_path.predict_proba(folders.query), by_hand.predict_proba(folders.query)
    )


def test_a_pickle_answers_alike(folders, checkpoint):
    classifier = RDCClassifier(str(checkpoint), params=PARAMS).fit(folders.support)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(
        classifier.predict_proba(folders.query), again.predict_proba(folders.query)
    )


def test_explain_names_everything(folders, checkpoint):
    (folders.query / "broken.jpg").write_bytes(b"no picture")
    classifier = RDCClassifier(checkpoint, params=PARAMS).fit(folders.support)
    outcome = classifier.explain(folders.query)
    assert [row.image for row in outcome.rows] == sorted(folders.truth)
    assert outcome.unreadable[0][0] == "broken.jpg"
    assert outcome.summary["method"] == "RDC"
    row = outcome.rows[0]
    assert row.class_name == classifier.predict(folders.query)[0]
    assert row.nearest[0].image.startswith(row.nearest[0].class_name)


def test_labels_of_any_type_come_back():
    support, query, labels = make_task()
    for names in (np.array(["x", "y", "z", "w"]), np.array([40, 10, 20, 30])):
        classifier = RDCClassifier(params=PARAMS)
        classifier.fit(support.features, names[support.labels])
        assert (classifier.predict(query) == names[labels]).mean() > 0.9
        assert classifier.classes_.tolist() == sorted(names.tolist())


def test_scores_and_distances_say_the_same():
    support, query, _ = make_task()
    classifier = RDCClassifier(params=PARAMS).fit(support.features, support.labels)
    np.testing.assert_array_equal(
        classifier.decision_function(query), -classifier.distances(query)
    )
    assert (classifier.distances(query).argmin(1) == classifier.predict(query)).all()


def test_folders_without_a_backbone_are_refused(folders):
    with pytest.raises(UserError, match="folders need a backbone"):
        RDCClassifier().fit(folders.support)


def test_features_with_a_backbone_are_refused():
    with pytest.raises(ValueError, match=r"pictures \[n, h, w, 3\] of uint8"):
        RDCClassifier(brightness, image_size=16).fit(np.zeros((4, 8)), [0, 0, 1, 1])


def test_a_backbone_must_give_a_row_an_image(folders):
    with pytest.raises(UserError, match="one row of features an image"):
        RDCClassifier(lambda x: x, image_size=16).fit(folders.support)
    with pytest.raises(UserError, match="not finite"):
        RDCClassifier(lambda x: np.full((len(x), 3), np.nan), image_size=16).fit(
            folders.support
        )


def test_an_unfitted_classifier_says_so(folders):
    with pytest.raises(NotFittedError):
        RDCClassifier(brightness, image_size=16).predict(folders.query)
