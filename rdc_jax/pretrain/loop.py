"""The loop: step, log, validate, save, stop when asked."""

import collections
import dataclasses
import logging
import math
import signal
from collections.abc import Callable, Iterator
from typing import Any

import jax
import optax
from jaxtyping import PRNGKeyArray

from rdc_jax.models.checkpoints import Checkpoints
from rdc_jax.pretrain import validation
from rdc_jax.pretrain.logs import MetricsLog
from rdc_jax.pretrain.phases import Phase, size_at
from rdc_jax.pretrain.progress import Progress
from rdc_jax.pretrain.signals import Interrupted, Stop
from rdc_jax.pretrain.state import TrainState, empty_window, evaluated, split
from rdc_jax.pretrain.step import Batch, TrainStep, learning_rate_at, readings
from rdc_jax.runtime import processes
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

# Steps that may wait for their turn on the device: enough to keep it busy, few enough
# for a prompt stop and little memory for the batches in flight.
_IN_FLIGHT = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """A run with all its parts in place.

    Attributes:
      key: Of the augmentation.
      train_step: Makes the step of a size of crop.
      batches: Makes this process's rows of each batch, from a step on.
      layout: Where arrays live.
      phases: Sizes of the crops.
      schedule: The learning rate.
      total_steps: Of the run.
      steps_per_epoch: Steps of a pass over the images.
      batch_size: Images a step.
      log_every: Steps between lines of the log.
      checkpoint_every: Steps between checkpoints; 0 means at validations only.
      validate_every: Steps between validations.
      validate: Gives named accuracies, or None for no validation.
      metadata: Of the checkpoints.
    """

    key: PRNGKeyArray
    train_step: Callable[[int], TrainStep]
    batches: Callable[[int], Iterator[Batch]]
    layout: processes.Layout
    phases: tuple[Phase, ...]
    schedule: optax.Schedule
    total_steps: int
    steps_per_epoch: int
    batch_size: int
    log_every: int
    checkpoint_every: int
    validate_every: int
    validate: validation.Validate | None
    metadata: dict[str, Any]


def train(
    plan: Plan,
    state: TrainState,
    *,
    checkpoints: Checkpoints,
    log: MetricsLog | None,
    stop: Stop,
) -> TrainState:
    """Train from where the state is to the end of the run.

    Args:
      plan: The run.
      state: To go on from; its memory is given up.
      checkpoints: Where to save.
      log: Where to write numbers; None in all processes but the first.
      stop: Raised by signals.

    Returns:
      The last state.

    Raises:
      Interrupted: A signal came; the state has been saved.
      UserError: The loss is not finite, or the disk is full.
    """
    start = int(state.step)
    sizes = [size_at(plan.phases, i, plan.total_steps) for i in range(plan.total_steps)]
    with Progress(sizes, start, plan.batch_size, shown=log is not None) as progress:
        trainer = _Trainer(plan, checkpoints, log, stop, progress)
        batches = plan.batches(start)
        for step, size in enumerate(sizes[start:], start + 1):
            state = trainer.advance(state, size, next(batches))
            state = trainer.write_line(state, step)
            trainer.keep(state, step)
    return state


@dataclasses.dataclass
class _Trainer:
    """The parts of one turn of the loop; ``step`` counts the steps done."""

    plan: Plan
    checkpoints: Checkpoints
    log: MetricsLog | None
    stop: Stop
    progress: Progress

    def __post_init__(self) -> None:
        self.in_flight: collections.deque[jax.Array] = collections.deque()
        # One copy on each device of each process, as the rest of the state.
        copied = self.plan.layout.replicated
        self.empty_window = jax.jit(empty_window, out_shardings=copied)

    def advance(self, state: TrainState, size: int, local: Batch) -> TrainState:
        """Send one step to the device, without waiting for it."""
        batch = processes.put_batch(self.plan.layout, local)
        state, loss = self.plan.train_step(size)(self.plan.key, state, batch)
        self.in_flight.append(loss)
        if len(self.in_flight) > _IN_FLIGHT:
            self.in_flight.popleft().block_until_ready()
        self.progress.advance()
        return state

    def write_line(self, state: TrainState, step: int) -> TrainState:
        """Log the window, if it is time, and begin a new one."""
        if not self._due(step, self.plan.log_every):
            return state
        values = self._finite_readings(state, step)
        speed = self.progress.images_per_second()
        self.progress.show_metrics(values, speed)
        if self.log is not None:
            epoch = step / self.plan.steps_per_epoch
            rate = learning_rate_at(self.plan.schedule, step - 1)
            line = {"epoch": epoch, **values, "learning_rate": rate}
            self.log.write(step, {**line, "images_per_second": speed})
        return state._replace(window=self.empty_window())

    def keep(self, state: TrainState, step: int) -> None:
        """Validate and save, if it is time; leave, if a signal came."""
        validates = self._due(step, self.plan.validate_every)
        leaves = self._must_leave(step)
        if not (validates or leaves or self._due(step, self.plan.checkpoint_every)):
            return
        self._finite_readings(state, step)
        score = None
        if validates and self.plan.validate is not None:
            accuracies = self.plan.validate(evaluated(state))
            score = validation.score(accuracies)
            self.progress.show_validation(accuracies)
            if self.log is not None:
                epoch = step / self.plan.steps_per_epoch
                self.log.write(step, {"epoch": epoch, **accuracies})
        weights, rest = split(state)
        self.checkpoints.save(
            step,
            variables=weights,
            training=rest,
            metadata=self.plan.metadata,
            score=score,
        )
        self.progress.resume()
        if leaves:
            _log.info(
                "stopped by a signal; step %d of %d is saved: the same command goes on",
                *(step, self.plan.total_steps),
            )
            raise Interrupted(self.stop.signal or signal.SIGTERM)

    def _due(self, step: int, every: int) -> bool:
        return step == self.plan.total_steps or (every > 0 and step % every == 0)

    def _must_leave(self, step: int) -> bool:
        """Several processes leave at the same step; they ask each other at lines."""
        if step == self.plan.total_steps:
            return False
        if jax.process_count() > 1 and not self._due(step, self.plan.log_every):
            return False
        return processes.any_process(self.stop.signal is not None)

    def _finite_readings(self, state: TrainState, step: int) -> dict[str, float]:
        """Read the window, and stop the run before a broken state is saved."""
        values = readings(state.window)
        if all(map(math.isfinite, values.values())):
            return values
        rate = learning_rate_at(self.plan.schedule, step - 1)
        saved = self.checkpoints.steps
        kept = (
            f"step {saved[-1]} is the last good checkpoint" if saved else "none saved"
        )
        raise UserError(
            f"the loss or its gradient is not finite at step {step} (learning rate "
            f"{rate:g}; {kept}): lower --config.optimiser.learning_rate or add "
            "warmup_steps, in a new --workdir"
        )
