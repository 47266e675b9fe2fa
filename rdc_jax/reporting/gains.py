"""Did a method help? Gains over the baseline on the same tasks, with their intervals.

A gain counts as help when its whole 95% interval is above zero, as harm when it is
below, and is not clear otherwise. One task has no interval, and decides nothing.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rdc_jax.evaluation import statistics
from rdc_jax.reporting.runs import Row

Verdict = Literal["helps", "hurts", "unclear"]


class AverageGain(NamedTuple):
    """The gain of a method over several data sets.

    Attributes:
      mean: Of the data sets' gains.
      ci95: Its interval, over tasks; the data sets are taken as they are.
      verdict: Of the mean.
      by_verdict: Names of the data sets.
    """

    mean: float
    ci95: float | None
    verdict: Verdict
    by_verdict: dict[Verdict, list[str]]

    @property
    def datasets(self) -> int:
        """How many the mean is over."""
        return sum(map(len, self.by_verdict.values()))


def verdict(gain: float, ci95: float | None) -> Verdict:
    """Tell help from harm, and both from chance.

    >>> verdict(1.2, 0.4), verdict(-0.3, 0.4), verdict(5.0, None)
    ('helps', 'unclear', 'unclear')
    """
    if not statistics.beyond_chance(gain, ci95):
        return "unclear"
    return "helps" if gain > 0 else "hurts"


def row_verdict(row: Row) -> Verdict:
    """Give the verdict of a row of ``results.json`` that has a gain."""
    return verdict(row["gain"], row["gain_ci95"])


def average(rows: Sequence[Row]) -> AverageGain:
    """Average the gains of one method and shot over data sets.

    Tasks of different data sets are drawn independently, so the variance of the mean
    is the sum of theirs over the square of their number.

    >>> row = {"gain": 2.0, "gain_ci95": 0.6, "episodes": 1000}
    >>> found = average([row | {"dataset": "cub"}, row | {"dataset": "cars"}])
    >>> found.mean, round(found.ci95, 3), found.verdict
    (2.0, 0.424, 'helps')

    Args:
      rows: Of ``results.json``, with gains; at least one.
    """
    each = [(row["gain"], row["gain_ci95"]) for row in rows]
    mean, ci95 = statistics.average(each, [row["episodes"] for row in rows])
    names: dict[Verdict, list[str]] = {"helps": [], "hurts": [], "unclear": []}
    for row in rows:
        names[row_verdict(row)].append(row["dataset"])
    return AverageGain(mean, ci95, verdict(mean, ci95), names)
