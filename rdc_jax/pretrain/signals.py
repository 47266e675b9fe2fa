"""Being asked to stop: finish the step, save, and say how to go on."""

import signal
import types
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(SystemExit):
    """The run was stopped by a signal and has been saved.

    The exit code is the shell's for that signal (143 for SIGTERM, 130 for Ctrl-C):
    a scheduler must see that the job is not finished, which 0 would say.
    """

    def __init__(self, number: int):
        super().__init__(128 + number)


@contextmanager
def stop_on_signals() -> Iterator[list[int]]:
    """Catch SIGTERM and SIGINT in the block; the handlers before it come back.

    Yields:
      The signals that came. A second Ctrl-C is not caught: it stops at once.
    """
    came: list[int] = []

    def note(number: int, frame: types.FrameType | None) -> None:
        if number == signal.SIGINT and came:
            raise KeyboardInterrupt
        came.append(number)

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
