"""Progress of an evaluation: the accuracy so far, tasks a second, time left."""

import collections
from collections.abc import Mapping

import numpy as np
from jaxtyping import Num

from rdc_jax.core import statistics
from rdc_jax.evaluation.ledger import Stage
from rdc_jax.runtime import progress

_SECONDS_A_LINE = 10.0


class Progress(progress.Progress):
    """Counts tasks, those of each group of methods on their own.

    Time spent on anything but tasks (features, compiling) does not count.

    Args:
      total: Tasks of the whole run, those of each group of methods counted.
      left: Those of each group that are not on record.
      shown: False in processes that should stay silent.
    """

    def __init__(
        self, total: int, left: Mapping[str, int], *, shown: bool = True
    ) -> None:
        done = total - sum(left.values())
        super().__init__(
            total, done=done, unit="task", every=_SECONDS_A_LINE, shown=shown
        )
        self._left = {**left}
        self._computed = collections.Counter[str]()
        self._seconds: dict[str, float] = collections.defaultdict(float)

    def add(
        self,
        stage: Stage,
        episodes: int,
        seconds: float,
        accuracy_e: Num[np.ndarray, " e"],
        method: str,
    ) -> None:
        """Count tasks and show how it goes.

        ``accuracy_e`` are one method's on the stage so far, in percent.
        """
        self.advance(episodes)
        self._left[stage.group] -= episodes
        self._computed[stage.group] += episodes
        self._seconds[stage.group] += seconds
        mean, ci95 = statistics.mean(accuracy_e)
        self.show(
            f"{stage.dataset} {stage.shot}-shot: {method} {mean:.2f}"
            f"{statistics.plus_minus(ci95)}, {self._rate(stage.group)}, "
            f"{self._time_left()} left"
        )

    def _rate(self, group: str) -> str:
        rate = self._computed[group] / max(self._seconds[group], 1e-9)
        return f"{rate:.0f} tasks/s" if rate >= 2 else f"{1 / rate:.1f} s a task"

    def _time_left(self) -> str:
        """By the pace of each group; one that has not begun is only named."""
        seconds, unknown = 0.0, []
        for group, left in self._left.items():
            if self._computed[group]:
                seconds += left * self._seconds[group] / self._computed[group]
            elif left:
                unknown.append(group)
        return " + ".join([progress.duration(seconds), *unknown])
