"""Transductive answers as a scikit-learn classifier, on arrays or on pictures."""

import dataclasses
import os
from typing import Any

import numpy as np
from PIL import Image

from rdc_jax.methods.views import Views
from rdc_jax.predict.answers import Answers
from rdc_jax.predict.classify import Options, classify
from rdc_jax.predict.embedding import Embedder, Pictures, embed_support
from rdc_jax.predict.pictures import as_picture, find_queries, open_support
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

_DTYPES = (np.float64, np.float32)
_PATH = (str, os.PathLike)


@dataclasses.dataclass(eq=False, repr=False)
class RDCClassifier(ClassifierMixin, BaseEstimator):
    """Classify with a few labelled examples a class, by RDC+ or by RDC.

    Transductive: the rows that are given to ``predict`` together are compared with
    each other, and an answer depends on all of them. By default that happens where
    there are at least ten queries, which is where it pays; otherwise each query gets
    the nearest class mean of l2-normalised features.

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
        a list of files or of PIL images, or an array ``[n, h, w, 3]`` of pixels in
        0 … 255. A checkpoint as ``rdc_jax.models.load_backbone`` takes it,
        ``"packaged"`` for the weights that come with the package, or any function from
        images to features.
      method: What compares the queries with each other: ``rdc_plus`` or ``rdc``, maybe
        with parameters, ``"rdc(k=6;lam=0.3)"``.
      views: Of each picture, 1, 2 or 4, see ``rdc_jax.methods.views.Views``: more see
        more and take as many times the network's time.
      layers: Of the network, with weights: ``"features,block3:0.7"`` for the packaged
        one; ``"features"`` is its output.
      transductive: Whether queries are compared with each other: ``"auto"``, or always
        (``True``), or never (``False``).
      temperature: Of the probabilities; ``None``: fitted on the supports.
      reject_below: ``explain`` flags answers of a smaller probability.
      unknown_above: ``explain`` flags queries of a larger ``unknown_score``.
      batch_size: The most queries that are compared with each other; ``None``: 150, or
        four times the supports if that is more, up to 2,048.
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
    backbone: Any = None
    _: dataclasses.KW_ONLY
    method: Any = "rdc_plus"
    views: Any = 1
    layers: Any = "features"
    transductive: Any = "auto"
    temperature: Any = None
    reject_below: Any = 0.5
    unknown_above: Any = 0.95
    batch_size: Any = None
    image_size: Any = None
    normalize: Any = None

    def fit(self, X: Any, y: Any = None) -> "RDCClassifier":
        """Take in the labelled examples.

        Args:
          X: A folder with one folder a class; or a list or an array, see ``backbone``.
          y: The class of each row; none for a folder.

        Returns:
          This classifier.

        Raises:
          UserError: The folder has no two classes of readable pictures.
        """
        self._options()  # raises an error for a wrong parameter
        self._loaded = None
        if self.backbone is not None:
            self._loaded = self._embedder()
        if isinstance(X, _PATH):
            support = embed_support(self._embedder(), open_support(X))
            self.classes_ = np.array(support.class_names)
            self.n_features_in_ = support.features.shape[1]
        else:
            rows = self._rows(X)
            X, y = validate_data(self, rows.features, y, dtype=_DTYPES)
            check_classification_targets(y)
            self.classes_, labels_s = np.unique(y, return_inverse=True)
            names = rows.names or tuple(map(str, range(len(X))))
            support = Support(X, labels_s.astype(np.int32), (), names)
        self.support_features_ = support.features
        self.support_labels_ = support.labels
        self.support_images_ = list(support.images)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Give the class of each query.

        Args:
          X: A folder of pictures, a list or an array. Of a folder, the answers are in
            the sorted order of the files, without those that cannot be read;
            ``explain`` gives their names.

        Returns:
          One of ``classes_`` for each.
        """
        answers = self.explain(X)
        return self.classes_[answers.predicted]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give calibrated probabilities ``[q, c]``, columns as in ``classes_``."""
        return self.explain(X).probabilities

    def unknown_score(self, X: Any) -> np.ndarray:
        """Say how little each query looks like any class, from 0 to 1.

        It is the share of rows of the classes that would be nearer to the nearest class
        mean, as far as the labelled rows tell.
        """
        return self.explain(X).unknown_scores

    def distances(self, X: Any) -> np.ndarray:
        """Give distances to the classes ``[q, c]``; the smallest is the answer."""
        return self.explain(X).distances

    def decision_function(self, X: Any) -> np.ndarray:
        """Give scores of which the largest is the answer: minus the distances.

        For two classes ``[q]``, positive for the second.
        """
        dist_qc = self.distances(X)
        return dist_qc[:, 0] - dist_qc[:, 1] if len(self.classes_) == 2 else -dist_qc

    def explain(self, X: Any) -> Answers:
        """Answer with everything the command line shows.

        Args:
          X: As in ``predict``.

        Returns:
          Arrays, and ``rows`` with names, probabilities, flags, unknown scores, nearest
          supports and the answer for each alone; unreadable pictures; notes on how the
          answers came about.
        """
        check_is_fitted(self)
        support = Support(
            self.support_features_,
            self.support_labels_,
            tuple(map(str, self.classes_)),
            tuple(self.support_images_),
        )
        if isinstance(X, _PATH):
            query = self._embedder()(find_queries(X).items())
        else:
            query = self._rows(X)
            X = validate_data(self, query.features, dtype=_DTYPES, reset=False)
            query = query._replace(features=X)
        return classify(support, query, self._options())

    def _rows(self, X: Any) -> Pictures:
        """Features of a list or an array of pictures; without a backbone, X itself."""
        kinds = (*_PATH, Image.Image)
        listed = isinstance(X, (list, tuple)) and X and isinstance(X[0], kinds)
        if self.backbone is None and not listed:
            return Pictures(X)
        pictures = self._embedder()(
            (str(x) if isinstance(x, _PATH) else str(i), as_picture(x))
            for i, x in enumerate(X)
        )
        for name, reason in pictures.unreadable:  # an answer for each, or none at all
            raise UserError(f"{name}: {reason}; leave it out of the list")
        return pictures

    def _embedder(self) -> Embedder:
        """The network, which ``fit`` loads once; a pickle does not hold it."""
        if (loaded := getattr(self, "_loaded", None)) is not None:
            return loaded
        if self.backbone is None:
            raise UserError(
                "pictures need a backbone: give a checkpoint, a function, or 'packaged'"
            )
        views = Views.from_text(self.views, self.layers)
        return Embedder(
            self.backbone,
            self.image_size,
            self.normalize,
            views=views.asked_by(self._options().comparing),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_loaded": None}

    def _options(self) -> Options:
        return Options(
            method=self.method,
            transductive=self.transductive,
            temperature=self.temperature,
            reject_below=self.reject_below,
            unknown_above=self.unknown_above,
            batch_size=self.batch_size,
        )
