"""What is counted of a task: right answers of methods, and how neighbour sets look.

Labels of queries are used here, and by no method: a ``Task`` lacks them.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdc_jax.core.batching import chunk_size
from rdc_jax.core.params import RDCParams
from rdc_jax.core.prototypes import predictions
from rdc_jax.data.transforms import resize_size
from rdc_jax.evaluation import diagnostics, features
from rdc_jax.evaluation.datasets import DataSet, Numbers, Source
from rdc_jax.evaluation.engine import Counter, Engine
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.methods import Method, Task
from rdc_jax.methods.adapt import Adaptation, answers, init_key, trajectory
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

PyTree = Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureScorer:
    """Methods on the features of one model: all in one program.

    Attributes:
      name: What the ledger calls them together.
      entries: The methods; all with the same inputs and model.
      model: What makes the features.
      options: Of the run.
    """

    name: str
    entries: tuple[Entry, ...]
    model: Model
    options: Options

    prefetch = 1  # One chunk is computed while another one is collected.

    @property
    def columns(self) -> tuple[str, ...]:
        """What is counted of a task: right answers by method, then diagnostics."""
        names = tuple(entry.name for entry in self.entries)
        return names + (diagnostics.COLUMNS if self._static[1] else ())

    @property
    def record(self) -> dict[str, Any]:
        """What the ledger notes of them."""
        model = (
            self.model.whole_fingerprint if self._weights else self.model.fingerprint
        )
        return {"columns": self.columns, "model": model}

    def max_batch(self, shot: int, tasks: int) -> int:
        """Estimate how many of the tasks a device can take, by their intermediates."""
        one = functools.partial(count_on_features, *self._static, self._weights)
        return chunk_size(one, *self._shapes(shot, (tasks,)))

    def check(self, shot: int) -> None:
        """Trace the methods on the shapes of a task, before the long work.

        Raises:
          UserError: One does not fit.
        """
        one = functools.partial(count_on_features, *self._static)
        jax.eval_shape(one, self._weights, *self._shapes(shot))

    def counter(self, engine: Engine, dataset: DataSet, shot: int) -> Counter:
        """Make what counts tasks of a data set, from features on the devices."""
        rows = dataset.features(self.model, self.inputs)
        on_devices = jax.device_put(np.asarray(rows), engine.layout.replicated)
        gather = functools.partial(_gather(engine.layout.sharded), on_devices)

        def count(numbers: Numbers) -> Array:
            task, labels_eq = dataset.tasks(
                shot, numbers, gather, engine.layout.sharded
            )
            return engine.map(
                count_on_features,
                *(task, labels_eq),
                static=self._static,
                shared=(self._weights,),
            )

        return count

    @property
    def inputs(self) -> str:
        """What the methods take of the model."""
        return self.entries[0].method.inputs

    @property
    def _static(self) -> tuple[tuple[Method, ...], RDCParams | None]:
        """The methods, and whose neighbour sets are diagnosed."""
        used = any(entry.uses_neighbours for entry in self.entries)
        methods = tuple(entry.method for entry in self.entries)
        return methods, self.options.rdc if used else None

    @property
    def _weights(self) -> Model | None:
        """For methods with a head alone: others need nothing but the features."""
        heads = any(entry.method.head for entry in self.entries)
        return self.model if heads else None

    def _shapes(self, shot: int, lead: tuple[int, ...] = ()) -> tuple[Task, Any]:
        size = self.options.image_size
        image = jax.ShapeDtypeStruct((1, size, size, 3), np.float32)
        embed = features.feature_fn(self.inputs)
        row = jax.eval_shape(embed, self.model, image).shape[1:]
        return _shapes(self.options.task(shot, row), lead)


def count_on_features(
    methods: tuple[Method, ...],
    diagnosed: RDCParams | None,
    model: Model | None,
    task: Task,
    labels_q: Int[Array, " q"],
) -> Int[Array, " m"]:
    """Count right answers of each method, and the members of neighbour sets."""
    counts = [
        count_correct(method, method(task, model), task, labels_q) for method in methods
    ]
    if diagnosed is not None:
        counts += diagnostics.count(task, labels_q, diagnosed)
    return jnp.stack(counts).astype(jnp.int32)


def count_correct(
    method: Method, dist_qc: Float[Array, "..."], task: Task, labels_q: Int[Array, " q"]
) -> Int[Array, ""]:
    """Count the queries whose smallest class distance is that of their class.

    Raises:
      UserError: There is not one distance for each query and class.
    """
    expected = (len(task.query), task.num_classes)
    if dist_qc.shape != expected:
        raise UserError(
            f"method {method.name} gives {dist_qc.shape} for {expected}, one distance "
            "for each query and class: correct the method"
        )
    return (predictions(dist_qc) == labels_q).sum().astype(jnp.int32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdaptationScorer:
    """One method that fits the model to each task.

    A CPU takes one task a device: its cores are busy with one, and more of them would
    not go faster. Steps are driven from Python there, because XLA's convolutions are
    slow inside of loops on CPU; elsewhere a compiled loop spares the round trips.

    Attributes:
      entry: The method.
      model: Where each task starts.
      options: Of the run.
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
        return (*recorded, self.name)

    @property
    def record(self) -> dict[str, Any]:
        """What the ledger notes of it."""
        return {"columns": self.columns, "model": self.model.fingerprint}

    @property
    def method(self) -> Adaptation:
        """The method."""
        assert isinstance(self.entry.method, Adaptation)
        return self.entry.method

    def max_batch(self, shot: int, tasks: int) -> int:
        """Estimate how many of the tasks a device can take: one, if it is a CPU."""
        if jax.default_backend() == "cpu":
            return 1
        return self.fitting(shot, tasks)

    def fitting(self, shot: int, tasks: int, budget: int | None = None) -> int:
        """How many tasks fit into memory, by the intermediates of one step."""
        one = functools.partial(_first_step, self.method.phases[0], self.model)
        task, _ = self._shapes(shot, (tasks,))
        return chunk_size(one, task, budget=budget)

    def check(self, shot: int) -> None:
        """Trace the method on the shapes of a task, before the long work.

        Raises:
          UserError: It does not fit.
        """
        one = functools.partial(_count_all, self.method)
        jax.eval_shape(one, self.model, *self._shapes(shot))

    def counter(self, engine: Engine, dataset: DataSet, shot: int) -> Counter:
        """Make what counts tasks of a data set, from its images."""
        loop = self.method.step_loop
        if loop == "auto":
            loop = "python" if jax.default_backend() == "cpu" else "compiled"

        def count(numbers: Numbers) -> Array:
            task, labels_eq = self._tasks(engine, dataset, shot, numbers)
            if loop == "compiled":
                return engine.map(
                    _count_all,
                    *(task, labels_eq),
                    static=(self.method,),
                    shared=(jax.device_put(self.model, engine.layout.replicated),),
                )
            counts = [
                engine.map(_count, state, task, labels_eq, static=(phase,))
                for phase, state in self._states(engine, task)
            ]
            return jnp.stack(counts, axis=1)

        return count

    def example_features(
        self, engine: Engine, dataset: DataSet, shot: int
    ) -> Float[np.ndarray, "n d"]:
        """Features of the first task's images after training."""
        numbers = np.zeros(engine.devices, int)  # A share as those of the run.
        task, _ = self._tasks(engine, dataset, shot, numbers)
        *_, (phase, state) = self._states(engine, task)
        return np.asarray(engine.map(_features, state, task, static=(phase,))[0])

    def _tasks(
        self,
        engine: Engine,
        dataset: DataSet,
        shot: int,
        numbers: Numbers,
    ) -> tuple[Task, Array]:
        def images(indices: Int[np.ndarray, "e n"]) -> np.ndarray:
            return dataset.pixels.images[indices]

        task, labels_eq = dataset.tasks(shot, numbers, images, engine.layout.sharded)
        if (count := self.method.source_images) and self.source is not None:
            pair = self.source.draw(numbers, count)
            task = task.replace(distractors=jax.device_put(pair, engine.layout.sharded))
        return task, labels_eq

    def _states(
        self, engine: Engine, task: Task
    ) -> Iterator[tuple[Adaptation, PyTree]]:
        """States after the recorded steps and the last, driven from Python."""

        def begin(phase: Adaptation) -> PyTree:
            model = jax.device_put(self.model, engine.layout.replicated)
            return engine.map(_init, task, static=(phase,), shared=(model,))

        def follow(
            phase: Adaptation, number: int, last: Adaptation, state: PyTree
        ) -> PyTree:
            static = (phase, number, last)
            return engine.map(_follow, task, static=static, donated=(state,))

        def advance(phase: Adaptation, state: PyTree, start: int, stop: int) -> PyTree:
            for number in range(start, stop):
                at = jax.device_put(np.int32(number), engine.layout.replicated)
                state = engine.map(
                    _step, task, static=(phase,), shared=(at,), donated=(state,)
                )
            return state

        return trajectory(self.method, begin, follow, advance)

    def _shapes(self, shot: int, lead: tuple[int, ...] = ()) -> tuple[Task, Any]:
        side = resize_size(self.options.image_size)
        task = self.options.task(shot, (side, side, 3), np.uint8)
        if count := self.method.source_images:
            images = jax.ShapeDtypeStruct((count, side, side, 3), np.uint8)
            labels = jax.ShapeDtypeStruct((count,), np.int32)
            task = task.replace(distractors=(images, labels))
        return _shapes(task, lead)


# Functions of one task, at the top level so that each is compiled once.


def _init(phase: Adaptation, model: Model, task: Task) -> PyTree:
    return phase.init(init_key(task, 0), model, task)


def _follow(
    phase: Adaptation, number: int, last: Adaptation, state: PyTree, task: Task
) -> PyTree:
    return phase.init(init_key(task, number), last.adapted(state), task)


def _step(
    phase: Adaptation, number: Int[Array, ""], state: PyTree, task: Task
) -> PyTree:
    return phase.step(state, task, jax.random.fold_in(task.key, number))


def _first_step(phase: Adaptation, model: Model, task: Task) -> PyTree:
    return phase.step(_init(phase, model, task), task, task.key)


def _count(
    phase: Adaptation, state: PyTree, task: Task, labels_q: Int[Array, " q"]
) -> Int[Array, ""]:
    return count_correct(phase, phase.classify(state, task), task, labels_q)


def _count_all(
    method: Adaptation, model: Model, task: Task, labels_q: Int[Array, " q"]
) -> Int[Array, " m"]:
    dist_mqc = answers(method, model, task)
    counts = [count_correct(method, dist_qc, task, labels_q) for dist_qc in dist_mqc]
    return jnp.stack(counts)


def _features(phase: Adaptation, state: PyTree, task: Task) -> Float[Array, "n d"]:
    return phase.features(state, task)


def _shapes(task: Task, lead: tuple[int, ...]) -> tuple[Task, Any]:
    """Shapes of tasks and of their queries' labels, with a key for each."""
    labels = jax.ShapeDtypeStruct(task.query.shape[:1], np.int32)
    key = jax.eval_shape(lambda: jax.random.key(0))
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((*lead, *leaf.shape), leaf.dtype),
        (task.replace(key=key), labels),
    )


@functools.cache
def _gather(sharded: jax.sharding.NamedSharding) -> Any:
    return jax.jit(lambda rows, indices: rows[indices], out_shardings=sharded)


Scorer = FeatureScorer | AdaptationScorer
