"""What is counted of a task whose method fits the model to it."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdc_jax.core.batching import chunk_size
from rdc_jax.evaluation.datasets import DataSet, Numbers, Source
from rdc_jax.evaluation.engine import Counter, Engine
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.evaluation.scoring import Judged, Wanted, judge, with_labels
from rdc_jax.methods import Task
from rdc_jax.methods.adapt import Adaptation, Before, answers, start_phase, trajectory
from rdc_jax.models.model import Model
from rdc_jax.runtime.config_values import Shot

PyTree = Any


@dataclasses.dataclass(frozen=True)
class AdaptationScorer:
    """One method that fits the model to each task.

    A CPU takes one task a device: its cores are busy with one, and more of them would
    not go faster. Steps are driven from Python there, because XLA's convolutions are
    slow inside of loops on CPU; elsewhere a compiled loop spares the round trips.

    Attributes:
      entry: The method.
      model: Where each task starts.
      options: The typed config of the run.
      source: Where distractors come from, if the method asks for them.
    """

    entry: Entry
    model: Model
    options: Options
    source: Source | None = None

    prefetch = 0  # Tasks take seconds: each is put on record at once.

    @property
    def name(self) -> str:
        """What the ledger calls it."""
        return self.entry.name

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The method alone."""
        return (self.entry,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Right answers after recorded steps, then after the last."""
        recorded = (f"{self.name}@{step}" for step in self.method.recorded)
        wanted = Wanted.by(self.options)
        return tuple(
            column for name in (*recorded, self.name) for column in wanted.columns(name)
        )

    @property
    def record(self) -> dict[str, Any]:
        """What the ledger notes of it."""
        whole = self.method.head is not None
        model = self.model.whole_fingerprint if whole else self.model.fingerprint
        record = {"columns": self.columns, "methods": [self.name], "model": model}
        if self.source is not None and self.method.source_images:
            record["source"] = self.source.fingerprint
        return record

    @property
    def method(self) -> Adaptation:
        """The method."""
        assert isinstance(self.entry.method, Adaptation)
        return self.entry.method

    def max_batch(self, shot: Shot, tasks: int) -> int:
        """Estimate how many of the tasks a device can take: one, if it is a CPU."""
        if jax.default_backend() == "cpu":
            return 1
        return self.fitting(shot, tasks)

    def fitting(self, shot: Shot, tasks: int, budget: int | None = None) -> int:
        """How many tasks fit into memory, by the intermediates of one step."""
        one = functools.partial(_first_step, self.method.phases[0], self.model)
        task, _ = self._shapes(shot, (tasks,))
        return chunk_size(one, task, budget=budget)

    def check(self, shot: Shot) -> None:
        """Try the method on the shapes of a task, before the long work.

        Raises:
          UserError: It does not fit.
        """
        if self.source is not None:
            self.source.check(self.method.source_images)
        self.entry.check(self.options.task(shot, (1,)), self.model)
        one = functools.partial(_judge_all, self.method, Wanted.by(self.options))
        jax.eval_shape(one, self.model, *self._shapes(shot, steps=(self._steps,)))

    def counter(self, engine: Engine, dataset: DataSet, shot: Shot) -> Counter:
        """Make what counts tasks of a data set, from its images."""
        loop = self.method.step_loop
        if loop == "auto":
            # The distractors of all steps at once would fill the memory.
            stepwise = jax.default_backend() == "cpu" or self.method.source_images
            loop = "python" if stepwise else "compiled"

        wanted = Wanted.by(self.options)

        def count(numbers: Numbers) -> Judged:
            task, labels_eq = self._tasks(engine, dataset, shot, numbers)
            if loop == "compiled":
                task = self._with_distractors(engine, task, numbers, range(self._steps))
                return engine.map(
                    _judge_all,
                    *(task, labels_eq),
                    static=(self.method, wanted),
                    shared=(jax.device_put(self.model, engine.layout.replicated),),
                )
            return _joined(
                [
                    engine.map(_judge, state, task, labels_eq, static=(phase, wanted))
                    for phase, state in self._states(engine, task, numbers)
                ]
            )

        return count

    def example_features(
        self, engine: Engine, dataset: DataSet, shot: Shot
    ) -> Float[np.ndarray, "n d"] | None:
        """Features of the first task's images after training, if the method has any."""
        numbers = np.zeros(engine.devices, int)  # A share as those of the run.
        task, _ = self._tasks(engine, dataset, shot, numbers)
        *_, (phase, state) = self._states(engine, task, numbers)
        feat_end = engine.map(_features, state, task, static=(phase,))
        return None if feat_end is None else np.asarray(feat_end[0])

    def _tasks(
        self,
        engine: Engine,
        dataset: DataSet,
        shot: Shot,
        numbers: Numbers,
    ) -> tuple[Task, Array]:
        return dataset.tasks(shot, numbers, dataset.pictures, engine.layout.sharded)

    def _with_distractors(
        self, engine: Engine, task: Task, numbers: Numbers, steps: int | range
    ) -> Task:
        """Give tasks the distractors of a step, or of several on a second axis."""
        count, source = self.method.source_images, self.source
        if not count or source is None:
            return task
        if isinstance(steps, int):
            pair = source.draw(numbers, steps, count)
        else:
            pairs = [source.draw(numbers, step, count) for step in steps]
            images, labels = (np.stack(part, 1) for part in zip(*pairs, strict=True))
            pair = images, labels
        return task.replace(
            distractors=jax.device_put(pair, engine.layout.sharded),
            num_source_classes=source.num_classes,
        )

    def _states(
        self, engine: Engine, task: Task, numbers: Numbers
    ) -> Iterator[tuple[Adaptation, PyTree]]:
        """States after the recorded steps and the last, driven from Python."""

        def fed(number: int) -> Task:
            return self._with_distractors(engine, task, numbers, number)

        def begin(phase: Adaptation, number: int, before: Before) -> PyTree:
            if before is None:
                model = jax.device_put(self.model, engine.layout.replicated)
                return engine.map(_init, fed(number), static=(phase,), shared=(model,))
            last, state = before
            static = (phase, number, last)
            return engine.map(_go_on, fed(number), static=static, donated=(state,))

        def advance(phase: Adaptation, state: PyTree, start: int, stop: int) -> PyTree:
            for number in range(start, stop):
                at = jax.device_put(np.int32(number), engine.layout.replicated)
                state = engine.map(
                    _step, fed(number), static=(phase,), shared=(at,), donated=(state,)
                )
            return state

        return trajectory(self.method, begin, advance)

    @property
    def _steps(self) -> int:
        """Of all phases."""
        return sum(phase.steps for phase in self.method.phases)

    def _shapes(
        self, shot: Shot, lead: tuple[int, ...] = (), steps: tuple[int, ...] = ()
    ) -> tuple[Task, Any]:
        side = self.model.preprocessing.edge_at(self.options.image_size)
        task = self.options.task(shot, (side, side, 3), np.uint8)
        if count := self.method.source_images:
            images = jax.ShapeDtypeStruct((*steps, count, side, side, 3), np.uint8)
            labels = jax.ShapeDtypeStruct((*steps, count), np.int32)
            classes = self.source.num_classes if self.source is not None else 0
            task = task.replace(
                distractors=(images, labels), num_source_classes=classes
            )
        return with_labels(task, lead)


# Functions of one task, at the top level so that each is compiled once.


def _init(phase: Adaptation, model: Model, task: Task) -> PyTree:
    return start_phase(phase, 0, None, model, task)


def _go_on(
    phase: Adaptation, number: int, last: Adaptation, state: PyTree, task: Task
) -> PyTree:
    return start_phase(phase, number, (last, state), None, task)


def _step(
    phase: Adaptation, number: Int[Array, ""], state: PyTree, task: Task
) -> PyTree:
    return phase.step(state, task, jax.random.fold_in(task.key, number))


def _first_step(phase: Adaptation, model: Model, task: Task) -> PyTree:
    return phase.step(_init(phase, model, task), task, task.key)


def _judge(
    phase: Adaptation,
    wanted: Wanted,
    state: PyTree,
    task: Task,
    labels_q: Int[Array, " q"],
) -> Judged:
    return judge(phase, phase.distances(state, task), task, labels_q, wanted)


def _judge_all(
    method: Adaptation,
    wanted: Wanted,
    model: Model,
    task: Task,
    labels_q: Int[Array, " q"],
) -> Judged:
    dist_mqc = answers(method, model, task)
    judged = [judge(method, one, task, labels_q, wanted) for one in dist_mqc]
    return _joined(judged)


def _joined(along: Sequence[Judged]) -> Judged:
    """The counts after all recorded steps, with the answers after the last."""
    counts = jnp.concatenate([judged.counts for judged in along], axis=-1)
    return along[-1]._replace(counts=counts)


def _features(phase: Adaptation, state: PyTree, task: Task) -> PyTree:
    return phase.features(state, task)
