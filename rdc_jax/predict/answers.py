"""The answers for a set of pictures: arrays, rows with names, a summary."""

import dataclasses
import functools
import math
import pathlib
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rdc_jax.core.advice import Advice, advise
from rdc_jax.predict.embedding import Pictures
from rdc_jax.predict.task import Support


class Row(NamedTuple):
    """The answer for one picture, the ``number``-th of all.

    ``rejected`` says that its probability is below the threshold, ``unknown`` that it
    may be of none of the classes: its ``unknown_score``, the share of pictures of the
    classes that would be nearer to one, is above a threshold. ``second`` is the next
    probable class, ``plain`` the answer for the picture alone, ``nearest`` are the
    numbers of the nearest supports, and ``probabilities`` has all classes by name.
    """

    number: int
    image: str
    class_name: str
    probability: float
    rejected: bool
    unknown_score: float
    unknown: bool
    second: str
    second_probability: float
    plain: str
    nearest: tuple[int, ...]
    probabilities: dict[str, float]

    @property
    def changed(self) -> bool:
        """Whether comparing it with the others changed the answer."""
        return self.plain != self.class_name


@dataclasses.dataclass(frozen=True)
class Answers:
    """Answers for all queries: arrays, and ``rows`` with names.

    Attributes:
      support: What they rest on.
      query: The pictures, or features.
      distances: To each class; the smallest is the answer.
      probabilities: Of each class, rows sum to one.
      unknown_scores: How little each query looks like any class, of 0 to 1: the share
        of pictures of the classes that would be nearer to a class mean.
      plain: The class that NPC + l2 norm gives, alone.
      nearest: The nearest supports, nearest first.
      temperature: What distances were divided by.
      method: What gave the answers, in words.
      transductive: Whether the queries were compared with each other.
      reject_below: Answers of a smaller probability are flagged.
      unknown_above: Queries of a larger unknown score are flagged.
      notes: What the user should know of how the answers came about.
      backbone: What computed the features.
    """

    support: Support
    query: Pictures
    distances: Float[np.ndarray, "q c"]
    probabilities: Float[np.ndarray, "q c"]
    unknown_scores: Float[np.ndarray, " q"]
    plain: Int[np.ndarray, " q"]
    nearest: Int[np.ndarray, "q t"]
    temperature: float
    method: str
    transductive: bool
    reject_below: float
    unknown_above: float
    notes: tuple[str, ...] = ()
    backbone: str = ""

    @functools.cached_property
    def advice(self) -> Advice | None:
        """Which method this task wants; None without queries."""
        if not len(self.plain):
            return None
        unknown_q = np.full(len(self.plain), -1)
        return advise(
            np.concatenate([self.support.features, self.query.features]),
            np.concatenate([self.support.labels, unknown_q]),
        )

    @property
    def predicted(self) -> Int[np.ndarray, " q"]:
        """The class of the smallest distance."""
        return self.distances.argmin(axis=1)

    @property
    def rejected(self) -> Bool[np.ndarray, " q"]:
        """Whether the answer's probability is below the threshold."""
        return self.probabilities.max(axis=1) < self.reject_below

    @property
    def unknown(self) -> Bool[np.ndarray, " q"]:
        """Whether a query may be of none of the classes."""
        return self.unknown_scores > self.unknown_above

    @property
    def unreadable(self) -> tuple[tuple[str, str], ...]:
        """Name and reason of each picture that could not be read."""
        return self.query.unreadable

    @property
    def truth(self) -> Int[np.ndarray, " q"] | None:
        """The true classes, if all pictures are in folders named like the classes."""
        names = self.support.class_names
        folders = [pathlib.PurePath(name).parent.name for name in self.query.names]
        if not folders or not set(folders) <= set(names):
            return None
        return np.array([names.index(folder) for folder in folders])

    @property
    def summary(self) -> dict[str, Any]:
        """What the answers rest on, and how many are right where that is known."""
        summary: dict[str, Any] = {
            "classes": list(self.support.class_names),
            "supports": len(self.support.labels),
            "method": self.method,
            "temperature": self.temperature,
            "reject_below": self.reject_below,
            "unknown_above": self.unknown_above,
        }
        if self.backbone:
            summary["backbone"] = self.backbone
        if self.truth is not None:
            right = self.predicted == self.truth
            summary["accuracy"] = round(100 * right.mean(), 2)
        return summary

    @property
    def rows(self) -> list[Row]:
        """One a query, in the queries' order."""
        return [self._row(i) for i in range(len(self.plain))]

    def _row(self, i: int) -> Row:
        names, probability_c = self.support.class_names, self.probabilities[i].tolist()
        # Of a task of one class, the second is the first again.
        best, second, *_ = [*np.argsort(-self.probabilities[i], kind="stable"), -1]
        return Row(
            number=i,
            image=self.query.names[i] if self.query.names else str(i),
            class_name=names[best],
            probability=probability_c[best],
            rejected=probability_c[best] < self.reject_below,
            unknown_score=float(self.unknown_scores[i]),
            unknown=bool(self.unknown[i]),
            second=names[second],
            second_probability=probability_c[second],
            plain=names[self.plain[i]],
            nearest=tuple(self.nearest[i].tolist()),
            probabilities=dict(zip(names, probability_c, strict=True)),
        )


def percent(probability: float) -> str:
    """Write a probability for people, who would take 100% at its word.

    It is rounded down: one below a threshold must not look as if it reached it.

    >>> percent(0.872), percent(0.499), percent(0.9968)
    ('87%', '49%', '>99%')
    """
    if probability > 0.99:
        return ">99%"
    return f"{math.floor(100 * probability + 1e-6)}%"


def sum_up(answers: Answers) -> list[str]:
    """Say in a few lines what the answers are, with what their remarks mean."""
    count, unsure = len(answers.plain), int(answers.rejected.sum())
    changed = int((answers.predicted != answers.plain).sum())
    line = f"{count} classified by {answers.method}; {unsure or 'none'} unsure"
    if unsure:
        line += f" (below {100 * answers.reject_below:.3g}%: look at them yourself)"
    if changed:
        line += f"; {changed} would be of another class if looked at alone"
    if unknown := int(answers.unknown.sum()):
        line += (
            f"; {unknown} may be of none of the classes (farther than "
            f"{100 * answers.unknown_above:.3g}% of their pictures)"
        )
    advised = [f"advised: {answers.advice}"] if answers.advice else []
    return [line, *accuracy(answers), *answers.notes, *advised]


def accuracy(answers: Answers) -> list[str]:
    """Say how many answers are right, in a line if the truth is known, else in none."""
    if answers.truth is None:
        return []
    right, sure = answers.predicted == answers.truth, ~answers.rejected
    line = f"accuracy, by the folders' names: {_share(right)}"
    if answers.transductive:
        line += f"; each looked at alone {_share(answers.plain == answers.truth)}"
    if 0 < sure.sum() < len(sure):
        line += f"; without those that are unsure {_share(right[sure])}"
    return [line]


def _share(right: Bool[np.ndarray, " q"]) -> str:
    return f"{right.mean():.0%} ({int(right.sum())} of {len(right)})"
