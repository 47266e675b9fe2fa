"""Accuracies over episodes, with 95% intervals, and paired comparisons.

The field gives 1.96·std/√N, with the standard deviation over N. That covers the mean in
95% of cases where tasks are many, but in 60% where they are two. Here 1.96 is Student's
quantile and the deviation is over N - 1, which covers it at any number; for the paper's
2,000 tasks the two agree to .1%.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Num
from scipy import special


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
    """Mean and t·std/√N, with Student's quantile of N - 1 degrees of freedom.

    >>> values = np.array([40.0, 40.0, 60.0, 60.0])
    >>> mean(values).mean, round(mean(values).ci95, 2)
    (50.0, 18.37)
    """
    values_e = np.asarray(values_e, np.float64)
    episodes = len(values_e)
    if episodes < 2:
        return Mean(float(values_e.mean()), None)
    ci95 = _quantile(episodes - 1) * values_e.std(ddof=1) / np.sqrt(episodes)
    return Mean(float(values_e.mean()), float(ci95))


def average(
    means: Sequence[tuple[float, float | None]], episodes: Sequence[int]
) -> Mean:
    """Mean of independent means, by Welch and Satterthwaite's degrees of freedom.

    >>> found = average([(1.0, 0.3), (3.0, 0.4)], [1000, 1000])
    >>> found.mean, round(found.ci95, 3)
    (2.0, 0.25)

    Args:
      means: Each with its interval, if it has one.
      episodes: How many each is over.
    """
    value = float(np.mean([mean for mean, _ in means]))
    intervals = [ci95 for _, ci95 in means if ci95 is not None]
    if len(intervals) < len(means):
        return Mean(value, None)
    freedom_m = np.asarray(episodes) - 1
    variance_m = np.square(np.asarray(intervals) / _quantile(freedom_m))
    total = variance_m.sum()
    if total == 0:
        return Mean(value, 0.0)
    freedom = total**2 / (variance_m**2 / freedom_m).sum()
    return Mean(value, float(_quantile(freedom) * np.sqrt(total) / len(means)))


def _quantile(freedom: Num[ArrayLike, "..."]) -> Float[np.ndarray, "..."]:
    """How many standard errors a 95% interval reaches to each side."""
    return np.asarray(special.stdtrit(freedom, 0.975))


def gain(values_e: Float[np.ndarray, " e"], other_e: Float[np.ndarray, " e"]) -> Gain:
    """Compare a method's accuracies with another's, episode by episode.

    >>> gain(np.array([52.0, 60.0, 68.0, 72.0]), np.array([50.0, 58.0, 70.0, 74.0]))
    Gain(mean=0.0, ci95=3.67..., wins=2, losses=2)
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
