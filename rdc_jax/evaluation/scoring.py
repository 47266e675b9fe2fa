"""What is kept of a task: the answers of methods, and counts of the right ones.

Labels of queries are used here, and by no method: a ``Task`` lacks them. The exception
is a method that says in its title that it is told them (``Method.told``).
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdc_jax.core.batching import chunk_size
from rdc_jax.core.params import RDCParams
from rdc_jax.core.prototypes import predictions
from rdc_jax.evaluation import diagnostics, unknown
from rdc_jax.evaluation.datasets import DataSet, Numbers
from rdc_jax.evaluation.engine import Counter, Engine
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.methods import Method, Task
from rdc_jax.methods.views import Views, feature_fn
from rdc_jax.models.model import Model
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.errors import UserError


class Wanted(NamedTuple):
    """What is kept of a task beside the answers.

    Attributes:
      distances: Whether class distances are.
      unknown: Whether queries of no class are told from the others.
    """

    distances: bool = False
    unknown: bool = False

    @classmethod
    def by(cls, options: Options) -> "Wanted":
        """As a run asks for."""
        return cls(options.predictions, options.distractor_queries > 0)

    def columns(self, name: str) -> tuple[str, ...]:
        """What the ledger calls the counts of a method: right answers first."""
        return (name, *(unknown.columns(name) if self.unknown else ()))


class Judged(NamedTuple):
    """What is kept of a task; with a leading axis, of several.

    Attributes:
      counts: Of right answers, and of what else a scorer's columns name.
      answers: The class of each query by each method; -1 where there is none.
      distances: Those that the answers rest on, if they are asked for.
    """

    counts: Int[Array, "... m"]
    answers: Int[Array, "... a q"]
    distances: Float[Array, "... a q c"] | None = None


@dataclasses.dataclass(frozen=True)
class FeatureScorer:
    """Methods on the features of one model: all in one program.

    Attributes:
      name: What the ledger calls them together.
      entries: The methods; all on the same features of the same model.
      model: What makes the features.
      options: The typed config of the run.
    """

    name: str
    entries: tuple[Entry, ...]
    model: Model
    options: Options

    prefetch = 1  # One chunk is computed while another one is collected.

    @property
    def columns(self) -> tuple[str, ...]:
        """What is counted of a task: right answers by method, sizes, diagnostics."""
        wanted = Wanted.by(self.options)
        names = [name for entry in self.entries for name in wanted.columns(entry.name)]
        sizes = diagnostics.SIZES if self.options.varies else ()
        return (*names, *sizes, *(diagnostics.COLUMNS if self._static[1] else ()))

    @property
    def record(self) -> dict[str, Any]:
        """What the ledger notes of them."""
        model = (
            self.model.whole_fingerprint if self._weights else self.model.fingerprint
        )
        methods = [entry.name for entry in self.entries]
        return {"columns": self.columns, "methods": methods, "model": model}

    def max_batch(self, shot: Shot, tasks: int) -> int:
        """Estimate how many of the tasks a device can take, by their intermediates."""
        one = functools.partial(judge_on_features, *self._static, self._weights)
        return chunk_size(one, *self._shapes(shot, (tasks,)))

    def check(self, shot: Shot) -> None:
        """Try the methods on the shapes of a task, before the long work.

        Raises:
          UserError: One does not fit.
        """
        for entry in self.entries:
            entry.check(self.options.task(shot, (1,)), self.model)
        one = functools.partial(judge_on_features, *self._static)
        jax.eval_shape(one, self._weights, *self._shapes(shot))

    def counter(self, engine: Engine, dataset: DataSet, shot: Shot) -> Counter:
        """Make what counts tasks of a data set, from features on the devices."""
        rows = dataset.features(self.model, self.views)
        on_devices = jax.device_put(np.asarray(rows), engine.layout.replicated)
        weights = jax.device_put(self._weights, engine.layout.replicated)
        sharded = engine.layout.sharded
        gather = functools.partial(_gather(sharded), on_devices)

        def count(numbers: Numbers) -> Judged:
            task, labels_eq = dataset.tasks(shot, numbers, gather, sharded)
            return engine.map(
                judge_on_features,
                *(task, labels_eq),
                static=self._static,
                shared=(weights,),
            )

        return count

    @property
    def views(self) -> Views | None:
        """What the methods take of the model; None: maps."""
        return self.options.views(self.entries[0])

    @property
    def _static(self) -> tuple[tuple[Method, ...], RDCParams | None, Wanted]:
        """The methods, whose neighbour sets are diagnosed, what else is kept."""
        used = any(entry.uses_neighbours for entry in self.entries)
        methods = tuple(entry.method for entry in self.entries)
        diagnosed = self.options.rdc if used else None
        return methods, diagnosed, Wanted.by(self.options)

    @property
    def _weights(self) -> Model | None:
        """For methods with a head alone: others need nothing but the features."""
        heads = any(entry.method.head for entry in self.entries)
        return self.model if heads else None

    def _shapes(self, shot: Shot, lead: tuple[int, ...] = ()) -> tuple[Task, Any]:
        side = self.model.preprocessing.edge_at(self.options.image_size)
        image = jax.ShapeDtypeStruct((1, side, side, 3), np.uint8)
        embed = feature_fn(self.views, self.options.image_size)
        row = jax.eval_shape(embed, self.model, image).shape[1:]
        return with_labels(self.options.task(shot, row), lead)


def judge_on_features(
    methods: tuple[Method, ...],
    diagnosed: RDCParams | None,
    wanted: Wanted,
    model: Model | None,
    task: Task,
    labels_q: Int[Array, " q"],
) -> Judged:
    """Let each method answer, count right answers and members of neighbour sets."""
    each = [
        judge(method, method.told(task, model, labels_q), task, labels_q, wanted)
        for method in methods
    ]
    judged = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *each)
    more = diagnostics.sizes(task, labels_q) if task.query_mask is not None else []
    if diagnosed is not None:
        more += diagnostics.count(task, labels_q, diagnosed)
    if not more:
        return judged
    counts = jnp.concatenate([judged.counts, jnp.stack(more).astype(jnp.int32)])
    return judged._replace(counts=counts)


def judge(
    method: Method,
    dist_qc: Float[Array, "..."],
    task: Task,
    labels_q: Int[Array, " q"],
    wanted: Wanted,
) -> Judged:
    """Hold one method's answers against the labels.

    Right are the queries whose smallest class distance is that of their class.

    Raises:
      UserError: There is not one distance for each query and class.
    """
    expected = (len(task.query), task.num_classes)
    if dist_qc.shape != expected:
        raise UserError(
            f"method {method.name} gives {dist_qc.shape} for {expected}, one distance "
            "for each query and class: correct the method"
        )
    answer_q = predictions(dist_qc)
    counts = [((answer_q == labels_q) & (labels_q >= 0)).sum()]
    if wanted.unknown:
        counts += unknown.count(dist_qc, labels_q)
    return Judged(
        counts=jnp.stack(counts).astype(jnp.int32),
        answers=answer_q.astype(jnp.int16)[None],
        distances=dist_qc.astype(jnp.float32)[None] if wanted.distances else None,
    )


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
