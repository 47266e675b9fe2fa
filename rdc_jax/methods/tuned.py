"""What the systems share that tune the whole network on each task.

A method makes its own batches and its own loss of them. A step is an epoch where the
batches are small, so that methods of any batch size count steps as their authors do.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, Key, UInt8

from rdc_jax.core.rows import l2_normalize
from rdc_jax.data.transforms import test_batch
from rdc_jax.methods.adapt import Adaptation
from rdc_jax.methods.base import Task
from rdc_jax.models.model import Model
from rdc_jax.runtime.config_values import at_least, one_of

PyTree = Any
Progress = TypeVar("Progress")

Loss = Callable[[Model, PyTree], tuple[Float[Array, ""], Model]]
"""From the model and what sits on its features to a value, and the model with the
batch-norm statistics that the batches leave."""


class State(NamedTuple):
    """What differs between tasks.

    Attributes:
      model: Without the weights that train: its batch-norm statistics.
      params: Weights of the model's parts (``network``), and of the task's ``head``.
      optimiser: State of the optimiser.
    """

    model: Model
    params: PyTree
    optimiser: PyTree


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuned(Adaptation):
    """Fits all weights to a task; a subclass has ``steps``, ``optimiser``, ``step``.

    Attributes:
      parts: Of the model, which train; a class attribute.
      record: Steps after which the accuracy is noted too.
      loop: Steps driven from ``python`` or in one ``compiled`` loop; ``auto``.
    """

    parts: ClassVar[tuple[str, ...]] = ("backbone",)

    record: tuple[int, ...] = ()
    loop: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if type(value) is int and field.name != "pseudo":
                at_least(f"{self.name}: {field.name}", value, 1)
            if type(value) is float:
                at_least(f"{self.name}: {field.name}", value, 0.0)
        one_of(f"{self.name}: loop", self.loop, ("auto", "python", "compiled"))

    @property
    def recorded(self) -> tuple[int, ...]:
        """Steps to note, without those from the last on."""
        last = sum(phase.steps for phase in self.phases)
        return tuple(sorted(step for step in {*self.record} if step < last))

    @property
    def step_loop(self) -> str:
        """As ``loop`` says."""
        return self.loop

    @abc.abstractmethod
    def optimiser(self) -> optax.GradientTransformation:
        """Give what moves ``State.params``."""

    def start(self, key: Key[Array, ""], width: int, task: Task) -> PyTree:
        """Draw the head's weights, on features of this width; none by default."""
        del key, width, task
        return {}

    def init(self, key: Key[Array, ""], model: Model, task: Task) -> State:
        """Begin with a task."""
        variables = {**model.variables}
        params = variables.pop("params")
        shape = (1, self.image_size, self.image_size, 3)
        feat_1d = jax.eval_shape(model.embed, jax.ShapeDtypeStruct(shape, jnp.float32))
        weights = {
            "network": {part: params[part] for part in self.parts},
            "head": self.start(key, feat_1d.shape[1], task),
        }
        kept = model.replace(variables=variables)
        return State(kept, weights, self.optimiser().init(weights))

    def descend(self, state: State, loss: Loss) -> State:
        """Take one step of the optimiser."""

        def of_params(params: PyTree) -> tuple[Array, PyTree]:
            model = _with(state.model, params["network"])
            value, model = loss(model, params["head"])
            return value, _without(model)

        grads, model = jax.grad(of_params, has_aux=True)(state.params)
        updates, optimiser = self.optimiser().update(
            grads, state.optimiser, state.params
        )
        return State(model, optax.apply_updates(state.params, updates), optimiser)

    def adapted(self, state: State) -> Model:
        """The model with the task's weights and statistics."""
        return _with(state.model, state.params["network"])

    def features(self, state: State, task: Task) -> Float[Array, "n d"]:
        """By the running statistics, each image by itself."""
        images = jnp.concatenate([task.support, task.query])
        return self.adapted(state).embed(self.transformed(state, images))

    def transformed(
        self, state: State, images: UInt8[Array, "b h w 3"]
    ) -> Float[Array, "b size size 3"]:
        """Decoded images as the network expects them."""
        edge = state.model.preprocessing.edge_at(self.image_size)
        return test_batch(images, self.image_size, edge)


def epoch(
    key: Key[Array, ""],
    state: Progress,
    count: int,
    batch: int,
    on_rows: Callable[[Progress, Int[Array, " b"]], Progress],
) -> Progress:
    """Go through rows once, in random order, in small batches; the last may be smaller.

    Args:
      key: Of the order.
      state: Before the first batch.
      count: How many rows there are.
      batch: How many of them a batch has.
      on_rows: From a state and the rows of a batch to the next state.
    """
    order = jax.random.permutation(key, count)
    whole = count // batch
    rows_tb = order[: whole * batch].reshape(whole, batch)
    state, _ = lax.scan(lambda old, rows: (on_rows(old, rows), None), state, rows_tb)
    return on_rows(state, order[whole * batch :]) if count % batch else state


def forward(
    model: Model, images: Float[Array, "b h w 3"]
) -> tuple[Float[Array, "b d"], Model]:
    """Features, normalised by the batch; the model with the statistics it leaves."""
    feat_bd, _, stats = model.apply(images, train=True)
    if not stats:  # Not all networks have batch norm.
        return feat_bd, model
    return feat_bd, model.replace(variables={**model.variables, "batch_stats": stats})


def linear_head(key: Key[Array, ""], width: int, num_classes: int) -> PyTree:
    """Draw a linear layer as torch does, its bias too."""
    shapes = {"kernel": (width, num_classes), "bias": (num_classes,)}
    bound = width**-0.5
    return {
        name: jax.random.uniform(each, shape, jnp.float32, -bound, bound)
        for (name, shape), each in zip(
            shapes.items(), jax.random.split(key), strict=True
        )
    }


def logits(head: PyTree, feat_nd: Float[Array, "n d"]) -> Float[Array, "n c"]:
    """What a linear layer makes of features."""
    return feat_nd @ head["kernel"] + head["bias"]


def cross_entropy(
    logit_nc: Float[Array, "n c"], labels_n: Int[Array, " n"]
) -> Float[Array, ""]:
    """The mean over rows."""
    return optax.softmax_cross_entropy_with_integer_labels(logit_nc, labels_n).mean()


def class_means(
    feat_sd: Float[Array, "s d"], labels_s: Int[Array, " s"], num_classes: int
) -> Float[Array, "c d"]:
    """Means of the features as they are."""
    member_sc = jax.nn.one_hot(labels_s, num_classes)
    counts_c1 = jnp.maximum(member_sc.sum(axis=0), 1)[:, None]
    return jnp.einsum("sc,sd->cd", member_sc, feat_sd) / counts_c1


def nearest_by_cosine(task: Task) -> Float[Array, "q c"]:
    """Distances to the class means of plain features, by the angle between them."""
    mean_cd = class_means(task.support, task.support_labels, task.num_classes)
    return -l2_normalize(task.query) @ l2_normalize(mean_cd).T


def _with(model: Model, network: PyTree) -> Model:
    return model.replace(variables={**model.variables, "params": network})


def _without(model: Model) -> Model:
    rest = {kind: tree for kind, tree in model.variables.items() if kind != "params"}
    return model.replace(variables=rest)
