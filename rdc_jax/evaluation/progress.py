"""What a person sees of a run: a bar on a terminal, lines in a log file."""

import logging
import sys
import time

import numpy as np
from jaxtyping import Num
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from rdc_jax.evaluation import statistics
from rdc_jax.evaluation.ledger import Stage

_log = logging.getLogger(__name__)

_SECONDS_A_LINE = 10.0


class Progress:
    """Episodes a second, the accuracy so far and the time that is left.

    Time spent on anything but episodes (features, compiling) is not reckoned with.

    Args:
      total: Episodes of the whole run.
      done: Those on record before.
      shown: False in processes that should stay silent.
    """

    def __init__(self, total: int, done: int, *, shown: bool = True) -> None:
        self._total, self._done = total, done
        self._computed, self._seconds = 0, 0.0
        self._shown = shown
        self._terminal = shown and sys.stderr.isatty()
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
        self._computed += episodes
        self._seconds += seconds
        rate = self._computed / max(self._seconds, 1e-9)
        left = duration((self._total - self._done) / rate)
        mean, ci95 = statistics.mean(accuracy_e)
        text = (
            f"{stage.dataset} {stage.shot}-shot: {method} {mean:.2f} ± {ci95:.2f}, "
            f"{rate:.0f} episodes/s, {left} left"
        )
        if self._terminal:
            self._bar.postfix[0] = text
            self._bar.update(episodes)
        elif self._shown and time.monotonic() - self._told > _SECONDS_A_LINE:
            self._told = time.monotonic()
            _log.info("%d of %d episodes: %s", self._done, self._total, text)


def duration(seconds: float) -> str:
    """Write a duration in two units.

    >>> duration(42.0), duration(360.0), duration(7260.0)
    ('42s', '6m00s', '2h01m')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
