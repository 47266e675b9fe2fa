"""Being asked to stop: finish the step, save, and say how to go on."""

import signal
import types
from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """Whether, and by which signal, the run was asked to stop.

    Attributes:
      signal: Number of the signal, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self, number: int, frame: types.FrameType | None) -> None:
        """Note the signal; a second Ctrl-C stops at once."""
        if number == signal.SIGINT and self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


class Interrupted(SystemExit):
    """The run was stopped by a signal and has been saved.

    The exit code is the shell's for that signal (143 for SIGTERM, 130 for Ctrl-C):
    a scheduler must see that the job is not finished, which 0 would say.
    """

    def __init__(self, number: int):
        super().__init__(128 + number)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Catch SIGTERM and SIGINT in the block; the handlers before it come back."""
    stop = Stop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
