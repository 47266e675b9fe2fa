"""RDC as a scikit-learn classifier, on arrays or on folders of pictures."""

import logging
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from rdc_jax.core.params import RDCParams
from rdc_jax.data.names import printable
from rdc_jax.predict.answers import Answers, Outcome, make_rows, summarize
from rdc_jax.predict.classify import Options, class_distances, classify
from rdc_jax.predict.embedding import Embedded, Embedder, embed_files, make_embedder
from rdc_jax.predict.pictures import (
    display_name,
    find_queries,
    open_support,
    squeeze,
)
from rdc_jax.predict.task import Support
from rdc_jax.runtime.errors import UserError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise UserError(
        "RDCClassifier needs scikit-learn 1.6 or later: pip install 'rdc-jax[predict]'"
    ) from error


_log = logging.getLogger(__name__)
_DTYPES = (np.float64, np.float32)


class RDCClassifier(ClassifierMixin, BaseEstimator):
    """Classify by Ranking Distance Calibration, with a few labelled examples a class.

    Transductive: the rows that are given to ``predict`` together are compared with
    each other, and an answer depends on all of them. By default that happens where
    there are at least twice as many queries as supports, which is where it pays;
    otherwise each query gets the nearest class mean of l2-normalised features.

    Example:
      >>> import numpy as np
      >>> from rdc_jax.predict import RDCClassifier
      >>> rng = np.random.default_rng(0)
      >>> centres = rng.normal(size=(3, 64))
      >>> X, y = np.repeat(centres, 2, axis=0), np.repeat(["cat", "dog", "owl"], 2)
      >>> queries = np.repeat(centres, 10, axis=0) + rng.normal(size=(30, 64))
      >>> RDCClassifier().fit(X, y).predict(queries)[::10].tolist()
      ['cat', 'dog', 'owl']

    Args:
      backbone: ``None``: X are features ``[n, d]``. Otherwise X are pictures: a folder,
        or an array ``[n, h, w, 3]`` of pixels in 0 … 255. A checkpoint as
        ``rdc_jax.models.load_backbone`` takes it, ``"packaged"`` for the weights that
        come with the package, or any function from images to features.
      params: ``RDCParams``; ``None`` for their defaults.
      transductive: Whether queries are compared with each other: ``auto``, or always
        (``True``), or never (``False``).
      temperature: Of the probabilities; ``None``: fitted on the supports.
      reject_below: ``explain`` flags answers of a smaller probability.
      batch_size: Queries compared with each other at a time; ``None``: 150, or four
        times the supports if that is more, up to 2,048.
      image_size: Edge of the backbone's images in pixels; ``None``: what the
        checkpoint notes, else 224.
      normalize: From pixels ``[b, image_size, image_size, 3]`` in 0 … 255 to what the
        backbone wants; ``None``: ImageNet's mean and deviation.

    Attributes:
      classes_: Names of the classes.
      n_features_in_: Length of the features.
      support_features_: Features of the labelled rows.
      support_labels_: Their places in ``classes_``.
      support_images_: Their paths below the folder, or their numbers.
    """

    # Any: by scikit-learn's convention the constructor takes everything, and fit tells
    # what is wrong with it.
    def __init__(
        self,
        backbone: Any = None,
        *,
        params: Any = None,
        transductive: Any = "auto",
        temperature: Any = None,
        reject_below: Any = 0.5,
        batch_size: Any = None,
        image_size: Any = None,
        normalize: Any = None,
    ) -> None:
        self.backbone = backbone
        self.params = params
        self.transductive = transductive
        self.temperature = temperature
        self.reject_below = reject_below
        self.batch_size = batch_size
        self.image_size = image_size
        self.normalize = normalize

    def fit(self, X: Any, y: Any = None) -> "RDCClassifier":
        """Take in the labelled examples.

        Args:
          X: A folder with one folder a class, or an array; see ``backbone``.
          y: The class of each row; none for a folder.

        Returns:
          This classifier.

        Raises:
          UserError: The folder has no two classes of readable pictures.
        """
        self._loaded = None
        if self.backbone is not None:
            self._loaded = self._embedder()
        if isinstance(X, (str, os.PathLike)):
            return self._fit_folder(X)
        X, y = validate_data(self, self._features(X), y, dtype=_DTYPES)
        check_classification_targets(y)
        self.classes_, labels_s = np.unique(y, return_inverse=True)
        return self._keep(X, labels_s, [str(i) for i in range(len(X))])

    def predict(self, X: Any) -> np.ndarray:
        """Give the class of each query.

        Args:
          X: A folder of pictures, or an array. Of a folder, the answers are in the
            sorted order of the files, without those that cannot be read; ``explain``
            gives their names.

        Returns:
          One of ``classes_`` for each.
        """
        predicted = self._answer(self._query(X).features).predicted
        return self.classes_[predicted]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the calibrated probability of each class.

        Args:
          X: As in ``predict``.

        Returns:
          ``[q, c]``, columns in the order of ``classes_``.
        """
        return self._answer(self._query(X).features).probabilities

    def distances(self, X: Any) -> np.ndarray:
        """Give the distance to each class; the smallest is the answer.

        Args:
          X: As in ``predict``.

        Returns:
          ``[q, c]``, columns in the order of ``classes_``.
        """
        features = self._query(X).features
        return class_distances(self._support(), features, self._options())

    def decision_function(self, X: Any) -> np.ndarray:
        """Give scores of which the largest is the answer: minus the distances.

        Args:
          X: As in ``predict``.

        Returns:
          ``[q, c]``; for two classes ``[q]``, positive for the second.
        """
        dist_qc = self.distances(X)
        return dist_qc[:, 0] - dist_qc[:, 1] if len(self.classes_) == 2 else -dist_qc

    def explain(self, X: Any) -> Outcome:
        """Answer with everything the command line shows.

        Args:
          X: As in ``predict``.

        Returns:
          Rows with names, probabilities, reject flags, nearest supports and the answer
          without RDC; unreadable pictures; notes on how the answers came about.
        """
        query = self._query(X)
        answers = self._answer(query.features)
        labels_s = self.support_labels_
        rows = make_rows(answers, query.names, self.support_images_, labels_s)
        summary = summarize(answers, len(labels_s), self.reject_below)
        return Outcome(rows, query.unreadable, summary, answers.notes)

    def _fit_folder(self, folder: str | os.PathLike[str]) -> "RDCClassifier":
        source = open_support(folder)
        paths = source.paths
        found = self._embed_files(paths)
        kept, labels_s = np.unique(source.labels[found.rows], return_inverse=True)
        self.classes_ = np.array([source.class_names[i] for i in kept])
        self.n_features_in_ = found.features.shape[1]
        images = [printable(source.ids[row]) for row in found.rows]
        return self._keep(found.features, labels_s, images)

    def _keep(
        self, X: np.ndarray, labels_s: np.ndarray, images: list[str]
    ) -> "RDCClassifier":
        self._options()  # mistakes in parameters are told here
        self.support_features_ = X
        self.support_labels_ = labels_s.astype(np.int32)
        self.support_images_ = images
        return self

    def _query(self, X: Any) -> "_Query":
        check_is_fitted(self)
        if not isinstance(X, (str, os.PathLike)):
            X = validate_data(self, self._features(X), dtype=_DTYPES, reset=False)
            return _Query(X, [str(i) for i in range(len(X))], [])
        root = pathlib.Path(X)
        paths = find_queries(root)
        found = self._embed_files(paths)
        names = [display_name(path, root) for path in paths]
        return _Query(
            found.features,
            [names[row] for row in found.rows],
            [(names[i], error.reason) for i, error in found.unreadable.items()],
        )

    def _answer(self, features: np.ndarray) -> Answers:
        names = tuple(map(str, self.classes_))
        return classify(self._support(), features, names, self._options())

    def _features(self, X: Any) -> Any:
        """Features of an array of pictures; anything else is features already."""
        if self.backbone is None:
            return X
        images = np.asarray(X)
        if images.ndim != 4 or images.shape[-1] != 3 or images.dtype != np.uint8:
            raise ValueError(
                "with a backbone, X is a folder or pictures [n, h, w, 3] of uint8, not "
                f"{images.dtype}{list(images.shape)}; backbone=None takes features"
            )
        embedder = self._embedder()
        return embedder(squeeze(images, embedder.square))

    def _embed_files(self, paths: tuple[pathlib.Path, ...]) -> Embedded:
        if self.backbone is None:
            raise UserError(
                "folders need a backbone: give a checkpoint, a function, or 'packaged'"
            )
        found = embed_files(self._embedder(), paths)
        for error in found.unreadable.values():
            _log.warning("unreadable: %s: %s", error.where, error.reason)
        return found

    def _embedder(self) -> Embedder:
        """The network, which ``fit`` loads once; a pickle does not hold it."""
        if (loaded := getattr(self, "_loaded", None)) is not None:
            return loaded
        packaged = isinstance(self.backbone, str) and self.backbone == "packaged"
        return make_embedder(
            None if packaged else self.backbone,
            image_size=self.image_size,
            normalize=self.normalize,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_loaded": None}

    def _support(self) -> Support:
        return Support(self.support_features_, self.support_labels_, len(self.classes_))

    def _options(self) -> Options:
        return Options(
            params=RDCParams() if self.params is None else self.params,
            transductive=self.transductive,
            temperature=self.temperature,
            reject_below=self.reject_below,
            batch_size=self.batch_size,
        )


class _Query(NamedTuple):
    """Features to classify, with the names of what they are of."""

    features: np.ndarray
    names: list[str]
    unreadable: list[tuple[str, str]]
