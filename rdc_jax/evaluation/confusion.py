"""Which classes are taken for which, over the tasks of a data set.

A task's classes 0 … c-1 are other classes of the data set each time. Where classes are
uneven the accuracy hides the rare ones; the balanced accuracy is the mean, over a
task's classes, of the share that is right, and macro-F1 that of the harmonic mean of
precision and recall. In even tasks the balanced accuracy is the accuracy.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Int64, UInt8

from rdc_jax.core import statistics

Row = dict[str, Any]

_PAIRS = 10  # Confused pairs that are listed.
_DOUBT = 40.0  # Queries of usual outcome that are added to those of a pair.


@dataclasses.dataclass(frozen=True, eq=False)
class Answered:
    """The tasks of a data set and shot, with what the methods answered.

    Attributes:
      class_names: Of the data set's k classes.
      image_names: Names of its images.
      image_classes: Class of each of its images.
      pixels: Its images, decoded.
      classes: Which of them the classes of each task are; -1 for none.
      images: Which of them the queries are.
      labels: Of the queries, in their task; -1 for queries of none of its classes.
      answers: By method; -1 where there is none.
    """

    class_names: tuple[str, ...]
    image_names: Sequence[str]
    image_classes: Int[np.ndarray, " n"]
    pixels: UInt8[np.ndarray, "n h w 3"]
    classes: Int[np.ndarray, "e c"]
    images: Int[np.ndarray, "e q"]
    labels: Int[np.ndarray, "e q"]
    answers: Mapping[str, Int[np.ndarray, "e q"]]

    def rows(self, method: str) -> Row:
        """Means over tasks of the measures that see all classes alike."""
        confusion_ecc = self._in_tasks(method)
        balanced = statistics.mean(100 * balanced_accuracy(confusion_ecc, self._asked))
        f1 = statistics.mean(100 * macro_f1(confusion_ecc, self._asked))
        return {
            "balanced_accuracy": balanced.mean,
            "balanced_accuracy_ci95": balanced.ci95,
            "macro_f1": f1.mean,
            "macro_f1_ci95": f1.ci95,
        }

    def confusion(self, method: str) -> Row:
        """Sum the tasks up by the classes of the data set.

        Returns:
          ``confusion``: queries by their class and the class that they were given;
          ``class_accuracy`` in percent, None for classes that no query had;
          ``confused``: the pairs of classes of which most queries go to the other, of
          those in tasks with both. Queries of one task share their supports, so that
          pairs of few tasks are ranked nearer to the usual pair.
        """
        confusion_kk = self._over_classes(self._in_tasks(method))
        met_kk = self._over_classes(np.repeat(self._asked[:, :, None], self._way, 2))
        asked_k, right_k = np.diagonal(met_kk), np.diagonal(confusion_kk)
        shares = 100 * right_k / np.maximum(asked_k, 1)
        return {
            "confusion": confusion_kk.tolist(),
            "class_accuracy": [
                share if asked else None
                for share, asked in zip(shares.tolist(), asked_k.tolist(), strict=True)
            ],
            "confused": self._confused(confusion_kk, met_kk),
        }

    def _confused(
        self, confusion_kk: Int64[np.ndarray, "k k"], met_kk: Int64[np.ndarray, "k k"]
    ) -> list[Row]:
        other_kk = ~np.eye(len(met_kk), dtype=bool)
        wrong_kk = confusion_kk * other_kk
        usual = wrong_kk.sum() / max((met_kk * other_kk).sum(), 1)
        rank_kk = (wrong_kk + _DOUBT * usual) / (met_kk + _DOUBT)
        rank_kk[wrong_kk == 0] = 0
        order = np.argsort(-rank_kk, axis=None, kind="stable")[:_PAIRS]
        return [
            {
                "class": self.class_names[i],
                "answer": self.class_names[j],
                "queries": int(met_kk[i, j]),
                "share": float(100 * wrong_kk[i, j] / met_kk[i, j]),
            }
            for i, j in zip(*np.unravel_index(order, rank_kk.shape), strict=True)
            if wrong_kk[i, j]
        ]

    @property
    def _way(self) -> int:
        return self.classes.shape[1]

    @functools.cached_property
    def _asked(self) -> Int64[np.ndarray, "e c"]:
        """Queries of each class."""
        task_e1 = np.arange(len(self.labels))[:, None]
        cell_eq = task_e1 * self._way + self.labels
        counts = np.bincount(cell_eq[self.labels >= 0], minlength=self.classes.size)
        return counts.reshape(self.classes.shape)

    def _in_tasks(self, method: str) -> Int64[np.ndarray, "e c c"]:
        """Queries of each task by their class and the class that they were given."""
        way, answer_eq = self._way, self.answers[method]
        task_e1 = np.arange(len(answer_eq))[:, None]
        cell_eq = (task_e1 * way + self.labels) * way + answer_eq
        given_eq = (self.labels >= 0) & (answer_eq >= 0)
        counts = np.bincount(cell_eq[given_eq], minlength=len(answer_eq) * way**2)
        return counts.reshape(-1, way, way)

    def _over_classes(
        self, counts_ecc: Int64[np.ndarray, "e c c"]
    ) -> Int64[np.ndarray, "k k"]:
        """Sum counts by pairs of classes of the data set."""
        total_kk = np.zeros(2 * (len(self.class_names),), np.int64)
        true_ecc, other_ecc = np.broadcast_arrays(
            self.classes[:, :, None], self.classes[:, None, :]
        )
        real_ecc = (true_ecc >= 0) & (other_ecc >= 0)
        pairs = true_ecc[real_ecc], other_ecc[real_ecc]
        np.add.at(total_kk, pairs, counts_ecc[real_ecc])
        return total_kk


def balanced_accuracy(
    confusion_ecc: Int64[np.ndarray, "e c c"], asked_ec: Int64[np.ndarray, "e c"]
) -> Float64[np.ndarray, " e"]:
    """Mean share that is right, over the classes that queries have."""
    right_ec = np.diagonal(confusion_ecc, axis1=1, axis2=2)
    share_ec = right_ec / np.maximum(asked_ec, 1)
    return share_ec.sum(axis=1) / (asked_ec > 0).sum(axis=1)


def macro_f1(
    confusion_ecc: Int64[np.ndarray, "e c c"], asked_ec: Int64[np.ndarray, "e c"]
) -> Float64[np.ndarray, " e"]:
    """Mean F1, over the classes that queries have or are given."""
    right_ec = np.diagonal(confusion_ecc, axis1=1, axis2=2)
    seen_ec = asked_ec + confusion_ecc.sum(axis=1)
    f1_ec = 2 * right_ec / np.maximum(seen_ec, 1)
    return f1_ec.sum(axis=1) / (seen_ec > 0).sum(axis=1)
