"""Accuracies over episodes, with the field's interval, and paired comparisons."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num


class Mean(NamedTuple):
    """A mean with its 95% interval, ± ``ci95``; of one episode there is none."""

    mean: float
    ci95: float | None


class Gain(NamedTuple):
    """One method against another on the same episodes.

    Attributes:
      mean: Mean of the differences.
      ci95: Its interval; narrower than from the two means, for both methods meet the
        same easy and hard tasks. One episode has none.
      wins: Episodes in which the method is better.
      losses: Episodes in which it is worse; the others are ties.
    """

    mean: float
    ci95: float | None
    wins: int
    losses: int


def mean(values_e: Num[np.ndarray, " e"]) -> Mean:
    """Mean and 1.96·std/√N, with the standard deviation over N as the field has it.

    >>> mean(np.array([40.0, 40.0, 60.0, 60.0]))
    Mean(mean=50.0, ci95=9.8)
    """
    values_e = np.asarray(values_e, np.float64)
    if len(values_e) < 2:
        return Mean(float(values_e.mean()), None)
    ci95 = 1.96 * values_e.std() / np.sqrt(len(values_e))
    return Mean(float(values_e.mean()), float(ci95))


def average(means: Sequence[tuple[float, float | None]]) -> Mean:
    """Mean of independent means, each given with its interval, if it has one.

    >>> average([(1.0, 0.3), (3.0, 0.4)])
    Mean(mean=2.0, ci95=0.25)
    """
    value = float(np.mean([mean for mean, _ in means]))
    intervals = [ci95 for _, ci95 in means if ci95 is not None]
    if len(intervals) < len(means):
        return Mean(value, None)
    return Mean(value, float(np.linalg.norm(intervals) / len(means)))


def gain(values_e: Float[np.ndarray, " e"], other_e: Float[np.ndarray, " e"]) -> Gain:
    """Compare a method's accuracies with another's, episode by episode.

    >>> gain(np.array([52.0, 60.0, 68.0, 72.0]), np.array([50.0, 58.0, 70.0, 74.0]))
    Gain(mean=0.0, ci95=1.96, wins=2, losses=2)
    """
    difference_e = np.asarray(values_e, np.float64) - np.asarray(other_e, np.float64)
    wins, losses = (difference_e > 0).sum(), (difference_e < 0).sum()
    return Gain(*mean(difference_e), int(wins), int(losses))


def beyond_chance(mean: float, ci95: float | None) -> bool:
    """Whether the whole interval lies on one side of zero.

    >>> beyond_chance(-1.2, 0.4), beyond_chance(0.3, 0.4), beyond_chance(5.0, None)
    (True, False, False)
    """
    return ci95 is not None and abs(mean) > ci95


def plus_minus(ci95: float | None, digits: int = 2) -> str:
    """Write an interval behind its mean; nothing where there is none.

    >>> plus_minus(0.456), plus_minus(None)
    (' ± 0.46', '')
    """
    return "" if ci95 is None else f" ± {ci95:.{digits}f}"
