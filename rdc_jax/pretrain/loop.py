"""The loop: step, log, validate, save, stop when asked."""

import collections
import dataclasses
import functools
import logging
import math
import signal
import time

import jax
import numpy as np

from rdc_jax.models.checkpoints import Checkpoints
from rdc_jax.pretrain.logs import MetricsLog
from rdc_jax.pretrain.setup import Run
from rdc_jax.pretrain.signals import Interrupted
from rdc_jax.pretrain.step import TrainState, mean_metrics, split, zero_sums
from rdc_jax.runtime import processes, progress
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

# Steps that may wait for their turn on the device: enough to keep it busy, few enough
# for a prompt stop and little memory for the batches in flight.
_IN_FLIGHT = 2


class TrainingProgress(progress.Progress):
    """Loss and other means, rate, and the time that is left.

    Steps at a larger size of crop take longer, so the time left goes by pixels:
    ``sizes`` has the edge of the crops of each step of the run.
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
        """Restart the measurement of the rate, after a validation for example."""
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


@dataclasses.dataclass
class Trainer:
    """Takes a run from some state to its end.

    Attributes:
      run: What to do.
      checkpoints: Where to save.
      log: Where to write numbers; None in all processes but the first.
      signals: Those that came; with the first, the run saves and leaves.
    """

    run: Run
    checkpoints: Checkpoints
    log: MetricsLog | None
    signals: list[int]

    def train(self, state: TrainState) -> None:
        """Train to the end of the run; ``state`` is donated.

        Raises:
          Interrupted: A signal came; the state has been saved.
          UserError: The loss is not finite, or the disk is full.
        """
        run, start = self.run, int(state.step)
        self._in_flight: collections.deque[jax.Array] = collections.deque()
        self._progress = TrainingProgress(
            run.crop_sizes, start, run.batch_size, shown=self.log is not None
        )
        # Replicated like the rest of the state, so that no step is compiled again.
        self._zero_sums = jax.jit(
            functools.partial(zero_sums, run.objective.metrics),
            out_shardings=run.layout.replicated,
        )
        with self._progress:
            for step, local in enumerate(run.batches(start), start + 1):
                state = self._advance(state, run.crop_sizes[step - 1], local)
                if run.is_due(step, run.options.log_every):
                    state = self._log_metrics(state, step)
                self._validate_and_save(state, step)
                if step == run.total_steps:
                    break

    def _advance(
        self, state: TrainState, size: int, local: dict[str, np.ndarray]
    ) -> TrainState:
        """Send one step to the device, without waiting for it."""
        batch = processes.put_batch(self.run.layout, local)
        state, loss = self.run.train_step(size)(self.run.key, state, batch)
        self._in_flight.append(loss)
        if len(self._in_flight) > _IN_FLIGHT:
            self._in_flight.popleft().block_until_ready()
        self._progress.advance()
        return state

    def _log_metrics(self, state: TrainState, step: int) -> TrainState:
        """Log the means since the last line, and reset the sums."""
        metrics = self._finite_metrics(state, step)
        speed = self._progress.images_per_second()
        self._progress.show_metrics(metrics, speed)
        metrics["learning_rate"] = self.run.learning_rate(step)
        self._write(step, {**metrics, "images_per_second": speed})
        return state._replace(sums=self._zero_sums())

    def _validate_and_save(self, state: TrainState, step: int) -> None:
        """Validate and save, if it is time; leave, if a signal came."""
        run, options = self.run, self.run.options
        every = options.validation.every_epochs * run.steps_per_epoch
        validates, leaves = run.is_due(step, every), self._must_leave(step)
        if not (validates or leaves or run.is_due(step, options.checkpoint_every)):
            return
        self._finite_metrics(state, step)
        weights, rest = split(state)
        score = None
        if validates and run.validate is not None:
            accuracies = run.validate(weights)
            score = float(np.mean([*accuracies.values()]))
            self._progress.show_validation(accuracies)
            self._write(step, accuracies)
        trees = {"variables": weights, "training": rest}
        self.checkpoints.save(step, **trees, metadata=run.metadata, score=score)
        self._progress.resume()
        if leaves:
            _log.info(
                "stopped by a signal; step %d of %d is saved: the same command goes on",
                *(step, run.total_steps),
            )
            raise Interrupted((self.signals or [signal.SIGTERM])[-1])

    def _write(self, step: int, values: dict[str, float]) -> None:
        if self.log is not None:
            epoch = step / self.run.steps_per_epoch
            self.log.write(step, {"epoch": epoch, **values})

    def _must_leave(self, step: int) -> bool:
        """Several processes leave at the same step; they ask each other at lines."""
        if step == self.run.total_steps:
            return False
        logged = self.run.is_due(step, self.run.options.log_every)
        if jax.process_count() > 1 and not logged:
            return False
        return processes.any_process(bool(self.signals))

    def _finite_metrics(self, state: TrainState, step: int) -> dict[str, float]:
        """Read the metrics, and stop the run before a broken state is saved."""
        values = mean_metrics(state.sums)
        if all(map(math.isfinite, values.values())):
            return values
        kept = "none saved"
        if saved := self.checkpoints.steps:
            kept = f"step {saved[-1]} is the last good checkpoint"
        raise UserError(
            f"the loss or its gradient is not finite at step {step} (learning rate "
            f"{self.run.learning_rate(step):g}; {kept}): lower "
            "--config.optimiser.learning_rate or add warmup_steps, in a new --workdir"
        )
