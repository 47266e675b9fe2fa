"""What is said of each picture, in words and numbers that any format can show."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int


class Answers(NamedTuple):
    """Answers for all queries, as arrays.

    Attributes:
      classes: Names of the classes.
      probabilities: Of each class, rows sum to one.
      predicted: The most probable class.
      rejected: Whether its probability is below the threshold.
      plain: The class that NPC + l2 norm gives, without calibration.
      nearest: The nearest supports by calibrated distance, nearest first.
      temperature: What distances were divided by.
      transductive: Whether the queries were compared with each other.
      notes: What the user should know of how the answers came about.
    """

    classes: tuple[str, ...]
    probabilities: Float[np.ndarray, "q c"]
    predicted: Int[np.ndarray, " q"]
    rejected: Bool[np.ndarray, " q"]
    plain: Int[np.ndarray, " q"]
    nearest: Int[np.ndarray, "q t"]
    temperature: float
    transductive: bool
    notes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """What gave the answers."""
        return "RDC" if self.transductive else "nearest class mean (NPC + l2 norm)"


class Nearest(NamedTuple):
    """One of the supports nearest to a picture; ``number`` is its place among all."""

    image: str
    class_name: str
    number: int


class Row(NamedTuple):
    """The answer for one picture.

    Attributes:
      image: The picture's path, below the query folder.
      class_name: The answer.
      probability: Of the answer.
      rejected: Whether that is below the threshold.
      second: The next probable class.
      second_probability: Of that class.
      plain: The answer without calibration.
      nearest: The nearest supports.
      probabilities: Of all classes by name.
      number: The query's place among all.
    """

    image: str
    class_name: str
    probability: float
    rejected: bool
    second: str
    second_probability: float
    plain: str
    nearest: tuple[Nearest, ...]
    probabilities: dict[str, float]
    number: int

    @property
    def changed(self) -> bool:
        """Whether calibration changed the answer."""
        return self.plain != self.class_name

    def as_json(self) -> dict[str, Any]:
        """Plain values, under the names that the JSON format has."""
        return {
            "image": self.image,
            "class": self.class_name,
            "probability": round(self.probability, 4),
            "rejected": self.rejected,
            "class_without_rdc": self.plain,
            "probabilities": {k: round(p, 4) for k, p in self.probabilities.items()},
            "nearest_supports": [
                {"image": near.image, "class": near.class_name} for near in self.nearest
            ],
        }


class Outcome(NamedTuple):
    """Everything that one run found out.

    Attributes:
      rows: One a readable picture.
      unreadable: Name and reason of each picture that could not be read.
      summary: What the answers rest on: classes, temperature, method, ….
      notes: What the user should know of how they came about.
    """

    rows: list[Row]
    unreadable: list[tuple[str, str]]
    summary: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def threshold(self) -> str:
        """The probability below which answers are rejected, for people."""
        return f"{100 * self.summary['reject_below']:.3g}%"


def percent(probability: float) -> str:
    """Write a probability for people, who would take 100% at its word.

    >>> percent(0.872), percent(0.9968)
    ('87%', '>99%')
    """
    return ">99%" if probability > 0.99 else f"{probability:.0%}"


def summarize(answers: Answers, supports: int, reject_below: float) -> dict[str, Any]:
    """Say what the answers rest on."""
    return {
        "classes": list(answers.classes),
        "supports": supports,
        "method": answers.method,
        "temperature": answers.temperature,
        "reject_below": reject_below,
    }


def make_rows(
    answers: Answers,
    images: list[str],
    support_images: list[str],
    support_labels: Int[np.ndarray, " s"],
) -> list[Row]:
    """Put the arrays together with the names of pictures and classes.

    Args:
      answers: For all queries.
      images: Names of the queries.
      support_images: Names of the supports.
      support_labels: Their classes.

    Returns:
      One row a query, in the queries' order.
    """

    def near(index: int) -> Nearest:
        name = answers.classes[support_labels[index]]
        return Nearest(support_images[index], name, index)

    def row(i: int, image: str) -> Row:
        probability_c = answers.probabilities[i]
        best, second, *_ = [*np.argsort(-probability_c, kind="stable"), -1]
        return Row(
            image=image,
            class_name=answers.classes[best],
            probability=float(probability_c[best]),
            rejected=bool(answers.rejected[i]),
            second=answers.classes[second],
            second_probability=float(probability_c[second]),
            plain=answers.classes[answers.plain[i]],
            nearest=tuple(near(int(j)) for j in answers.nearest[i]),
            probabilities=dict(
                zip(answers.classes, probability_c.tolist(), strict=True)
            ),
            number=i,
        )

    return [row(i, image) for i, image in enumerate(images)]
