"""RDCClassifier on folders, pictures and features."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from predict.test_task import make_task
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import rdc_jax
from rdc_jax import models
from rdc_jax.predict import RDCClassifier
from rdc_jax.predict.pictures import find_queries
from rdc_jax.runtime.errors import UserError

METHOD = "rdc(k=5;k2=3;dim=8)"


def brightness(images):
    """A backbone of one's own: mean colours of the four quarters."""
    b, h, w, _ = images.shape
    quarters = np.asarray(images).reshape(b, 2, h // 2, 2, w // 2, 3)
    return quarters.mean(axis=(2, 4)).reshape(b, 12)


def paths_of(folders):
    return list(find_queries(folders.query).values())


def truth_of(folders):
    return [folders.truth[path.name] for path in paths_of(folders)]


def test_folders_give_class_names(folders, checkpoint):
    classifier = RDCClassifier(checkpoint).fit(folders.support)
    assert classifier.classes_.tolist() == [f"class{i}" for i in range(5)]
    assert classifier.n_features_in_ == 8
    predicted = classifier.predict(folders.query)
    assert (predicted == truth_of(folders)).mean() > 0.4  # chance is 0.2
    assert classifier.predict_proba(folders.query).shape == (35, 5)


def test_any_function_is_a_backbone(folders):
    classifier = RDCClassifier(brightness, image_size=16)
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
    from rdc_jax.data.decode import read_picture

    pictures = np.stack([read_picture(path) for path in paths_of(folders)])
    classifier = RDCClassifier(checkpoint).fit(folders.support)
    np.testing.assert_array_equal(
        classifier.predict_proba(folders.query), classifier.predict_proba(pictures)
    )


def test_lists_of_files_or_images_equal_folders(folders, checkpoint):
    classifier = RDCClassifier(checkpoint).fit(folders.support)
    want = classifier.predict_proba(folders.query)
    paths = paths_of(folders)
    labelled = sorted(folders.support.glob("*/*"))
    names = [path.parent.name for path in labelled]
    images = []
    for path in paths:
        with Image.open(path) as image:
            images.append(image.copy())
    by_list = RDCClassifier(checkpoint).fit(labelled, names)
    for query in (paths, [str(path) for path in paths], images):
        np.testing.assert_array_equal(by_list.predict_proba(query), want)
    assert by_list.explain(paths).rows[0].image == str(paths[0])


def test_every_picture_of_a_list_must_be_readable(folders, checkpoint):
    classifier = RDCClassifier(checkpoint).fit(folders.support)
    broken = folders.query / "broken.jpg"
    broken.write_bytes(b"no picture")
    with pytest.raises(UserError, match=r"broken\.jpg.*leave it out"):
        classifier.predict([*paths_of(folders), str(broken)])


@pytest.mark.parametrize("method", ["rdc_plus", "rdc_plus(turns=1)", METHOD])
def test_a_method_with_its_parameters_answers(method):
    support, query, _ = make_task()
    found = RDCClassifier(method=method).fit(support.features, support.labels)
    want = rdc_jax.get(method)(support.features, support.labels, query, num_classes=4)
    np.testing.assert_allclose(found.distances(query), want, atol=1e-4)


def test_a_grid_search_over_methods():
    rng = np.random.default_rng(0)
    feat = rng.normal(size=(40, 16)) + 3 * np.eye(16)[np.repeat([0, 1], 20)]
    grid = {"method": ["rdc_plus", METHOD]}
    estimator = RDCClassifier(transductive=True)
    search = GridSearchCV(estimator, grid, cv=2).fit(feat, np.repeat([0, 1], 20))
    assert search.best_score_ > 0.9 and set(search.best_params_) == set(grid)


def test_views_and_layers_are_those_of_the_evaluation(folders, checkpoint):
    layers = "features,features:0.7"
    by_estimator = RDCClassifier(checkpoint, views=2, layers=layers)
    by_method = RDCClassifier(
        checkpoint, method="rdc_plus(views=2;layers=features+features:0.7)"
    )
    plain = RDCClassifier(checkpoint).fit(folders.support)
    for classifier in (by_estimator, by_method):
        classifier.fit(folders.support)
        assert classifier.n_features_in_ > plain.n_features_in_
    np.testing.assert_array_equal(
        by_estimator.support_features_, by_method.support_features_
    )
    mirrored = RDCClassifier(brightness, image_size=16, views=2).fit(folders.support)
    left, right = mirrored.support_features_.reshape(-1, 2, 2, 3).transpose(2, 0, 1, 3)
    np.testing.assert_allclose(left, right, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"views": 3}, "views must be one of 1, 2, 4"),
        ({"layers": "block9"}, "has no layer 'block9'"),
        ({"views": 2, "normalize": lambda x: x}, "do not go with normalize"),
        ({"method": "tim"}, "method='tim': use rdc_plus or rdc"),
    ],
)
def test_what_cannot_be_taken_of_a_network_is_told(
    options, message, folders, checkpoint
):
    with pytest.raises(UserError, match=message):
        RDCClassifier(checkpoint, **options).fit(folders.support)


def test_a_misspelt_backbone_names_the_packaged_one(folders):
    with pytest.raises(UserError, match=r"no pakaged.*'packaged'"):
        RDCClassifier("pakaged").fit(folders.support)


def test_features_that_would_fill_the_memory_are_refused():
    feat = np.zeros((8, 20_000), np.float32)
    feat[:, :8] = np.eye(8)
    classifier = RDCClassifier(method="rdc(k=2)", transductive=True).fit(
        feat, [0, 1] * 4
    )
    with pytest.raises(ValueError, match="20,000 would need a matrix of 2 GB"):
        classifier.predict(feat)


def test_a_loaded_backbone_is_as_good_as_its_path(folders, checkpoint):
    by_path = RDCClassifier(checkpoint).fit(folders.support)
    backbone = models.load_backbone(checkpoint)
    by_hand = clone(RDCClassifier(backbone)).fit(folders.support)
    np.testing.assert_array_equal(
        by_path.predict_proba(folders.query), by_hand.predict_proba(folders.query)
    )


def test_a_pickle_answers_alike(folders, checkpoint):
    classifier = RDCClassifier(str(checkpoint)).fit(folders.support)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(
        classifier.predict_proba(folders.query), again.predict_proba(folders.query)
    )


def test_explain_names_everything(folders, checkpoint):
    (folders.query / "broken.jpg").write_bytes(b"no picture")
    classifier = RDCClassifier(checkpoint).fit(folders.support)
    answers = classifier.explain(folders.query)
    assert [row.image for row in answers.rows] == sorted(folders.truth)
    assert answers.unreadable[0][0] == "broken.jpg"
    assert answers.summary["method"] == "RDC+"
    row = answers.rows[0]
    assert row.class_name == classifier.predict(folders.query)[0]
    nearest = classifier.support_images_[row.nearest[0]]
    label = classifier.support_labels_[row.nearest[0]]
    assert nearest.startswith(classifier.classes_[label])


def test_labels_of_any_type_come_back():
    support, query, labels = make_task()
    for names in (np.array(["x", "y", "z", "w"]), np.array([40, 10, 20, 30])):
        classifier = RDCClassifier()
        classifier.fit(support.features, names[support.labels])
        assert (classifier.predict(query) == names[labels]).mean() > 0.9
        assert classifier.classes_.tolist() == sorted(names.tolist())


def test_scores_and_distances_say_the_same():
    support, query, _ = make_task()
    classifier = RDCClassifier().fit(support.features, support.labels)
    np.testing.assert_array_equal(
        classifier.decision_function(query), -classifier.distances(query)
    )
    assert (classifier.distances(query).argmin(1) == classifier.predict(query)).all()


def test_folders_without_a_backbone_are_refused(folders):
    with pytest.raises(UserError, match="need a backbone"):
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


def test_it_is_all_that_one_has_to_import():
    """In a process of its own, in which nobody else has asked for the methods."""
    code = (
        "import numpy as np\n"
        "from rdc_jax.predict import RDCClassifier\n"
        "support, query = np.eye(2, 4), np.eye(2, 4)[[0, 1, 1]]\n"
        "print(RDCClassifier().fit(support, ['a', 'b']).predict(query).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "['a', 'b', 'b']", done.stderr
