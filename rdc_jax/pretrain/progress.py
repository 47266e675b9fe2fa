"""What a person sees of a run: a bar on a terminal, lines in a log file."""

import logging
import time

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from rdc_jax.runtime import progress

_log = logging.getLogger(__name__)


class Progress:
    """Rate, loss, accuracy, gradient norm and the time that is left.

    Steps at a larger size take longer, so the time left is reckoned in pixels.
    """

    def __init__(
        self, sizes: list[int], start: int, batch_size: int, *, shown: bool = True
    ):
        """Begin at a step.

        Args:
          sizes: Of the crops, one entry a step of the run.
          start: Steps done before.
          batch_size: Images a step.
          shown: False in processes that should stay silent.
        """
        self._work = [size**2 for size in sizes]
        self._start, self._step, self._batch = start, start, batch_size
        self._began = self._marked = time.monotonic()
        self._mark_step = start
        self._shown = shown
        self._terminal = shown and progress.enabled()
        self._redirect = logging_redirect_tqdm([logging.getLogger("rdc_jax")])
        self._bar = tqdm(
            total=len(sizes),
            initial=start,
            disable=not self._terminal,
            unit="step",
            bar_format="{n_fmt}/{total_fmt} |{bar:20}| {postfix[0]}",
            postfix=[""],
        )

    def __enter__(self) -> "Progress":
        self._redirect.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()
        self._redirect.__exit__(None, None, None)

    def advance(self) -> None:
        """Count one step."""
        self._step += 1
        self._bar.update()

    def images_per_second(self) -> float:
        """Give the rate since this was last asked."""
        now = time.monotonic()
        steps = self._step - self._mark_step
        rate = steps * self._batch / max(now - self._marked, 1e-9)
        self.resume()
        return rate

    def resume(self) -> None:
        """Begin to measure the rate anew, after something else than training."""
        self._marked, self._mark_step = time.monotonic(), self._step

    def seconds_left(self) -> float:
        """Give the time to the end of the run."""
        done = sum(self._work[self._start : self._step])
        left = sum(self._work[self._step :])
        return (time.monotonic() - self._began) * left / max(done, 1)

    def show(self, values: dict[str, float], rate: float) -> None:
        """Show the numbers of the last steps.

        Args:
          values: ``loss``, ``accuracy`` and ``grad_norm``.
          rate: Images a second.
        """
        text = (
            f"loss {values['loss']:.3f}, accuracy {values['accuracy']:.1f}%, "
            f"gradient {values['grad_norm']:.2f}, {rate:.0f} images/s, "
            f"{_duration(self.seconds_left())} left"
        )
        if self._terminal:
            self._bar.postfix[0] = text
            self._bar.refresh()
        elif self._shown:
            _log.info("step %d of %d: %s", self._step, len(self._work), text)

    def show_validation(self, accuracies: dict[str, float]) -> None:
        """Show the accuracies on held-out classes."""
        if self._shown:
            text = ", ".join(
                f"{name} {value:.2f}%" for name, value in accuracies.items()
            )
            _log.info("step %d of %d: %s", self._step, len(self._work), text)


def _duration(seconds: float) -> str:
    """Write a duration in two units.

    >>> _duration(42.0), _duration(360.0), _duration(7260.0)
    ('42s', '6m00s', '2h01m')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
