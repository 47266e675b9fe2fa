"""Fine-tuning a network on one task: pure ``init``, ``step`` and ``classify``.

Everything here is about one task; the caller vmaps over tasks, whose weights differ
but start from the same checkpoint. What is learned is an ``Objective``: RDC-FT's is in
``rdc_jax.methods.calibration``.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import optax
from jaxtyping import Array, Float, Int, Key, UInt8

from rdc_jax.data.transforms import test_batch, train_batch
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.models.optimiser import make_optimiser, make_schedule
from rdc_jax.runtime.errors import UserError

PyTree = Any

Apply = Callable[[PyTree, Array, bool], tuple[Array, PyTree]]
"""``(variables, images [b, h, w, 3], train) -> (features [b, d], batch statistics)``.

``variables`` are a dict with ``params``, a dict by module, and maybe ``batch_stats``.
With ``train`` the batch's own statistics normalise, and the running ones come back
updated.
"""


class Task(NamedTuple):
    """What fine-tuning may see of a task: no labels of queries.

    Attributes:
      support: Labelled images, as decoded.
      support_labels: Their classes, 0 … c-1.
      query: Images to classify, in random order.
      key: For what is random in training on this task.
    """

    support: UInt8[Array, "s h w 3"]
    support_labels: Int[Array, " s"]
    query: UInt8[Array, "q h w 3"]
    key: Key[Array, ""]


@runtime_checkable
class Objective(Protocol):
    """What a network is to learn from a task."""

    @property
    def queries(self) -> bool:
        """Whether it learns from the queries' images too."""

    def init(self, feat_nd: Array, labels_s: Array) -> tuple[PyTree, PyTree]:
        """Weights of its own, and what it keeps of the features before training."""

    def loss(
        self, own: PyTree, kept: PyTree, feat_nd: Array, labels_s: Array
    ) -> Float[Array, ""]:
        """What is minimised; ``feat_nd`` are the supports', then the queries'."""

    def classify(
        self, own: PyTree, feat_nd: Array, labels_s: Array
    ) -> Float[Array, "q c"]:
        """Class distances of the queries after training."""


class State(NamedTuple):
    """What differs between tasks that are being trained on.

    Attributes:
      params: The network's modules that train, and the objective's own weights.
      batch_stats: The running statistics.
      optimiser: State of the optimiser.
      kept: What the objective keeps.
    """

    params: PyTree
    batch_stats: PyTree
    optimiser: PyTree
    kept: PyTree


@dataclasses.dataclass(frozen=True)
class Finetuner:
    """An objective applied to a network.

    Attributes:
      apply: The network.
      objective: What it learns.
      options: How it learns.
      image_size: Edge of the network's input in pixels.
    """

    apply: Apply
    objective: Objective
    options: FinetuneOptions
    image_size: int

    def init(self, variables: PyTree, task: Task) -> State:
        """Begin with a task.

        Args:
          variables: Of the network, as the checkpoint has them.
          task: To be trained on.

        Raises:
          UserError: ``options.layers`` names modules that are not there.
        """
        stats = variables.get("batch_stats", {})
        blank = State({"network": {}}, stats, (), ())
        # As the first step will see them: a fixed target is that of the first step.
        feat_nd = self._features(variables, blank, task, train=self._by_batch)
        own, kept = self.objective.init(feat_nd, task.support_labels)
        network = self._trainable(variables["params"])
        params = {"network": network, "objective": own}
        return State(params, stats, self._optimiser().init(params), kept)

    def step(self, variables: PyTree, state: State, task: Task, number: Array) -> State:
        """Make one step on the whole task.

        Args:
          variables: As in ``init``.
          state: Of the task.
          task: The same as in ``init``.
          number: Of the step, from 0.

        Returns:
          The state after it.
        """
        images = self._views(task, number)

        def loss(params: PyTree) -> tuple[Array, PyTree]:
            merged = _merge(variables, params["network"], state.batch_stats)
            feat_nd, stats = self.apply(merged, images, self._by_batch)
            value = self.objective.loss(
                params["objective"], state.kept, feat_nd, task.support_labels
            )
            return value, stats

        grads, stats = jax.grad(loss, has_aux=True)(state.params)
        updates, optimiser = self._optimiser().update(
            grads, state.optimiser, state.params
        )
        if self.options.batch_norm != "updated":
            stats = state.batch_stats
        params = optax.apply_updates(state.params, updates)
        return State(params, stats, optimiser, state.kept)

    def classify(
        self, variables: PyTree, state: State, task: Task
    ) -> Float[Array, "q c"]:
        """Give class distances of the queries; the smallest is the answer."""
        feat_nd = self.features(variables, state, task)
        own = state.params["objective"]
        return self.objective.classify(own, feat_nd, task.support_labels)

    def features(
        self, variables: PyTree, state: State, task: Task
    ) -> Float[Array, "n d"]:
        """Give the features of the task's images: supports, then queries."""
        by_batch = self.options.batch_norm == "batch"
        return self._features(variables, state, task, train=by_batch)

    @property
    def _by_batch(self) -> bool:
        """Whether the images of a step normalise each other."""
        return self.options.batch_norm != "running"

    def _features(
        self, variables: PyTree, state: State, task: Task, *, train: bool
    ) -> Float[Array, "n d"]:
        merged = _merge(variables, state.params["network"], state.batch_stats)
        return self.apply(merged, self._images(task), train)[0]

    def _images(self, task: Task) -> Float[Array, "n size size 3"]:
        images = jax.numpy.concatenate([task.support, task.query])
        return test_batch(images, self.image_size)

    def _views(self, task: Task, number: Array) -> Float[Array, "n size size 3"]:
        """What a step sees of the images it learns from."""
        if not self.objective.queries:
            task = task._replace(query=task.query[:0])
        if not self.options.augment:
            return self._images(task)
        images = jax.numpy.concatenate([task.support, task.query])
        keys = jax.random.split(jax.random.fold_in(task.key, number), len(images))
        return train_batch(keys, images, self.image_size)

    def _trainable(self, params: PyTree) -> PyTree:
        layers = self.options.layers or tuple(params)
        if layers == ("none",):
            return {}
        for name in layers:
            if name not in params:
                raise UserError(
                    f"config.finetune.layers has {name!r}: the network's modules are "
                    f"{', '.join(sorted(params))}"
                )
        return {name: params[name] for name in layers}

    def _optimiser(self) -> optax.GradientTransformation:
        options = self.options.optimiser_options
        optimiser = make_optimiser(options, make_schedule(options, self.options.steps))
        if self.options.relative:
            return optax.chain(optimiser, optax.scale_by_param_block_rms())
        return optimiser


def _merge(variables: PyTree, trained: PyTree, batch_stats: PyTree) -> PyTree:
    """The network with a task's weights in it."""
    params = {**variables["params"], **trained}
    return {"params": params, "batch_stats": batch_stats}
