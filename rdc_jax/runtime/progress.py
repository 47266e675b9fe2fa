"""Progress of long work: a bar on a terminal, lines in a log file."""

import logging
import sys
import time
from typing import TypeVar

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

_log = logging.getLogger(__name__)

ProgressT = TypeVar("ProgressT", bound="Progress")


def enabled() -> bool:
    """Tell whether bars should be drawn on stderr.

    >>> import logging
    >>> logging.getLogger("rdc_jax").setLevel(logging.WARNING)  # as --quiet does
    >>> enabled()
    False
    >>> logging.getLogger("rdc_jax").setLevel(logging.NOTSET)
    """
    return sys.stderr.isatty() and logging.getLogger("rdc_jax").level <= logging.INFO


class Progress:
    """Counts units of work, and says how far it is.

    Args:
      total: Units of the whole work.
      done: Those done before.
      unit: What they are called.
      every: Least seconds between two lines of a log file.
      shown: False in processes that should stay silent.
    """

    def __init__(
        self,
        total: int,
        *,
        done: int = 0,
        unit: str,
        every: float = 0.0,
        shown: bool = True,
    ) -> None:
        self.total, self.done, self.unit = total, done, unit
        self._every, self._shown = every, shown
        self._terminal = shown and enabled()
        self._last_line = time.monotonic()
        self._redirect = logging_redirect_tqdm([logging.getLogger("rdc_jax")])
        self._bar = tqdm(
            total=total,
            initial=done,
            disable=not self._terminal,
            bar_format="{n_fmt}/{total_fmt} |{bar:20}| {postfix[0]}",
            postfix=[""],
        )

    def __enter__(self: ProgressT) -> ProgressT:
        self._redirect.__enter__()
        return self

    def __exit__(self, *unused: object) -> None:
        self._bar.close()
        self._redirect.__exit__(None, None, None)

    def advance(self, units: int = 1) -> None:
        """Count work that was just done."""
        self.done += units
        self._bar.update(units)

    def show(self, text: str) -> None:
        """Say how the work goes: beside the bar, or in a line if one is due."""
        if self._terminal:
            self._bar.postfix[0] = text
            self._bar.refresh()
        elif self._shown and time.monotonic() - self._last_line >= self._every:
            self._last_line = time.monotonic()
            self.line(text)

    def line(self, text: str) -> None:
        """Write a line that stays, above the bar or in the log."""
        if self._shown:
            _log.info("%s %d of %d: %s", self.unit, self.done, self.total, text)


def duration(seconds: float) -> str:
    """Write a duration in two units.

    >>> duration(42.0), duration(360.0), duration(7260.0)
    ('42s', '6m00s', '2h01m')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
