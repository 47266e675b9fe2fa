"""What is counted of a task: right answers of methods, and how neighbour sets look.

Labels of queries are used here, and by no method: a ``Task`` lacks them.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdc_jax.core.batching import chunk_size
from rdc_jax.core.params import RDCParams
from rdc_jax.core.prototypes import predictions
from rdc_jax.evaluation import diagnostics, features
from rdc_jax.evaluation.datasets import DataSet, Numbers
from rdc_jax.evaluation.engine import Counter, Engine
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.methods import Method, Task
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
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
        """Try the methods on the shapes of a task, before the long work.

        Raises:
          UserError: One does not fit.
        """
        for entry in self.entries:
            entry.check(self.options.task(shot, (1,)), self.model)
        one = functools.partial(count_on_features, *self._static)
        jax.eval_shape(one, self._weights, *self._shapes(shot))

    def counter(self, engine: Engine, dataset: DataSet, shot: int) -> Counter:
        """Make what counts tasks of a data set, from features on the devices."""
        rows = dataset.features(self.model, self.inputs)
        on_devices = jax.device_put(np.asarray(rows), engine.layout.replicated)
        weights = jax.device_put(self._weights, engine.layout.replicated)
        sharded = engine.layout.sharded
        gather = functools.partial(_gather(sharded), on_devices)

        def count(numbers: Numbers) -> Array:
            task, labels_eq = dataset.tasks(shot, numbers, gather, sharded)
            return engine.map(
                count_on_features,
                *(task, labels_eq),
                static=self._static,
                shared=(weights,),
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
        side = self.model.preprocessing.edge_at(self.options.image_size)
        image = jax.ShapeDtypeStruct((1, side, side, 3), np.uint8)
        embed = features.feature_fn(self.inputs, self.options)
        row = jax.eval_shape(embed, self.model, image).shape[1:]
        return with_labels(self.options.task(shot, row), lead)


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


def with_labels(task: Task, lead: tuple[int, ...]) -> tuple[Task, Any]:
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
