"""What a person sees of a run: a bar on a terminal, lines in a log file."""

import collections
import logging
import time
from collections.abc import Mapping

import numpy as np
from jaxtyping import Num
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from rdc_jax.evaluation import statistics
from rdc_jax.evaluation.ledger import Stage
from rdc_jax.runtime import progress

_log = logging.getLogger(__name__)

_SECONDS_A_LINE = 10.0


class Progress:
    """Episodes a second, the accuracy so far and the time that is left.

    Time spent on anything but episodes (features, compiling) is not reckoned with.

    Args:
      total: Episodes of the whole run, those of each group of methods counted.
      left: Those of each group that are not on record.
      shown: False in processes that should stay silent.
    """

    def __init__(
        self, total: int, left: Mapping[str, int], *, shown: bool = True
    ) -> None:
        done = total - sum(left.values())
        self._total, self._done, self._left = total, done, {**left}
        self._computed = collections.Counter[str]()
        self._seconds: dict[str, float] = collections.defaultdict(float)
        self._shown = shown
        self._terminal = shown and progress.enabled()
        self._told = time.monotonic()
        self._redirect = logging_redirect_tqdm([logging.getLogger("rdc_jax")])
        self._bar = tqdm(
            total=total,
            initial=done,
            disable=not self._terminal,
            bar_format="{n_fmt}/{total_fmt} |{bar:20}| {postfix[0]}",
            postfix=[""],
        )

    def __enter__(self) -> "Progress":
        self._redirect.__enter__()
        return self

    def __exit__(self, *unused: object) -> None:
        self._bar.close()
        self._redirect.__exit__(None, None, None)

    def advance(
        self,
        stage: Stage,
        episodes: int,
        seconds: float,
        accuracy_e: Num[np.ndarray, " e"],
        method: str,
    ) -> None:
        """Note episodes and, now and then, tell of them.

        Args:
          stage: What they belong to.
          episodes: How many they are.
          seconds: What they took.
          accuracy_e: Accuracies of one method on the stage so far, in percent.
          method: Its name.
        """
        self._done += episodes
        self._left[stage.group] -= episodes
        self._computed[stage.group] += episodes
        self._seconds[stage.group] += seconds
        mean, ci95 = statistics.mean(accuracy_e)
        text = (
            f"{stage.dataset} {stage.shot}-shot: {method} {mean:.2f}"
            f"{statistics.plus_minus(ci95)}, {self._rate(stage.group)}, "
            f"{self._time_left()} left"
        )
        if self._terminal:
            self._bar.postfix[0] = text
            self._bar.update(episodes)
        elif self._shown and time.monotonic() - self._told > _SECONDS_A_LINE:
            self._told = time.monotonic()
            _log.info("%d of %d episodes: %s", self._done, self._total, text)

    def _rate(self, group: str) -> str:
        rate = self._computed[group] / max(self._seconds[group], 1e-9)
        return f"{rate:.0f} episodes/s" if rate >= 2 else f"{1 / rate:.1f} s an episode"

    def _time_left(self) -> str:
        """By the pace of each group; one that has not begun is only mentioned."""
        seconds, unknown = 0.0, []
        for group, left in self._left.items():
            if self._computed[group]:
                seconds += left * self._seconds[group] / self._computed[group]
            elif left:
                unknown.append(group)
        return " + ".join([duration(seconds), *unknown])


def duration(seconds: float) -> str:
    """Write a duration in two units.

    >>> duration(42.0), duration(360.0), duration(7260.0)
    ('42s', '6m00s', '2h01m')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
