"""Accuracies over episodes, with the field's interval, and paired comparisons."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num


class Mean(NamedTuple):
    """A mean with its 95% interval, ± ``ci95``."""

    mean: float
    ci95: float


class Gain(NamedTuple):
    """One method against another on the same episodes.

    Attributes:
      mean: Mean of the differences.
      ci95: Its interval; narrower than from the two means, for both methods meet the
        same easy and hard tasks.
      wins: Episodes in which the method is better.
      losses: Episodes in which it is worse; the others are ties.
    """

    mean: float
    ci95: float
    wins: int
    losses: int


def mean(values_e: Num[np.ndarray, " e"]) -> Mean:
    """Mean and 1.96·std/√N, with the standard deviation over N as the field has it.

    >>> mean(np.array([40.0, 40.0, 60.0, 60.0]))
    Mean(mean=50.0, ci95=9.8)
    """
    values_e = np.asarray(values_e, np.float64)
    ci95 = 1.96 * values_e.std() / np.sqrt(len(values_e))
    return Mean(float(values_e.mean()), float(ci95))


def average(means: Sequence[tuple[float, float]]) -> Mean:
    """Mean of independent means, each given with its interval.

    >>> average([(1.0, 0.3), (3.0, 0.4)])
    Mean(mean=2.0, ci95=0.25)
    """
    values, intervals = np.array(means).T
    return Mean(float(values.mean()), float(np.linalg.norm(intervals) / len(values)))


def gain(values_e: Float[np.ndarray, " e"], other_e: Float[np.ndarray, " e"]) -> Gain:
    """Compare a method's accuracies with another's, episode by episode.

    >>> gain(np.array([52.0, 60.0, 68.0, 72.0]), np.array([50.0, 58.0, 70.0, 74.0]))
    Gain(mean=0.0, ci95=1.96, wins=2, losses=2)
    """
    difference_e = np.asarray(values_e, np.float64) - np.asarray(other_e, np.float64)
    wins, losses = (difference_e > 0).sum(), (difference_e < 0).sum()
    return Gain(*mean(difference_e), int(wins), int(losses))
