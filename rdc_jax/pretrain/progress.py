"""Progress of pre-training: means of the last steps, rate, time left."""

import time

from rdc_jax.runtime import progress


class Progress(progress.Progress):
    """Loss and other means, rate, and the time that is left.

    Steps at a larger size of crop take longer, so the time left goes by pixels.

    Args:
      sizes: Of the crops, one entry a step of the run.
      start: Steps done before.
      batch_size: Images a step.
      shown: False in processes that should stay silent.
    """

    def __init__(
        self, sizes: list[int], start: int, batch_size: int, *, shown: bool = True
    ) -> None:
        super().__init__(len(sizes), done=start, unit="step", shown=shown)
        self._pixels = [size**2 for size in sizes]
        self._start, self._batch = start, batch_size
        self._began = self._marked = time.monotonic()
        self._mark_step = start

    def images_per_second(self) -> float:
        """Give the rate since this was last asked."""
        steps, since = self.done - self._mark_step, self._marked
        self.resume()
        return steps * self._batch / max(self._marked - since, 1e-9)

    def resume(self) -> None:
        """Begin to measure the rate anew, after something else than training."""
        self._marked, self._mark_step = time.monotonic(), self.done

    def show_metrics(self, values: dict[str, float], rate: float) -> None:
        """Show the means of the last steps, images a second, and the time left."""
        means = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        done = sum(self._pixels[self._start : self.done])
        left = sum(self._pixels[self.done :])
        seconds = (time.monotonic() - self._began) * left / max(done, 1)
        self.show(f"{means}, {rate:.0f} images/s, {progress.duration(seconds)} left")

    def show_validation(self, accuracies: dict[str, float]) -> None:
        """Show the accuracies on held-out classes."""
        self.line(", ".join(f"{name} {x:.2f}%" for name, x in accuracies.items()))
