"""Methods that fit the model to each task before they answer.

One protocol, of pure functions of one task: ``init`` once, ``step`` as often as
``steps`` says, then ``classify``. The caller vmaps over tasks, whose models differ but
start from the same one.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.data.transforms import test_batch
from rdc_jax.methods.base import Method, Task
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

PyTree = Any

Before = tuple["Adaptation", PyTree] | None
"""A phase and the state that it left."""

_INIT = 2**31  # Added to a step's number for the key of ``init``, which is no step's.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adaptation(Method):
    """A method that fits the model to each task.

    A subclass has ``steps``, a field or a property, and ``init``, ``step`` and
    ``classify``; in all phases but the last, and for pictures, ``adapted``. A state is
    any pytree; it holds all that the later calls need of the model.

    Attributes:
      image_size: Edge of the network's input in pixels; tasks have larger images, as
        decoded, of which the test transform takes the centre.
      source_images: How many images of ``config.source`` each task carries as
        distractors; a class attribute.
    """

    inputs = "images"
    source_images: ClassVar[int] = 0

    image_size: int = 224

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse a network that is no JAX program, and to train on filling."""
        super().check(task, model)
        if task.support_mask is not None or task.query_mask is not None:
            raise UserError(
                "it trains on images, of which all tasks must have as many: give "
                "config.shots as numbers and leave config.ways and config.queries "
                "empty, or leave it out"
            )
        if model is not None and model.on_host:
            raise UserError(
                f"it fits the network to each task, and {model.arch} is a function of "
                "NumPy arrays: give a network of Flax, or a method on features"
            )

    @property
    @abc.abstractmethod
    def steps(self) -> int:
        """How often ``step`` is called."""

    @property
    def recorded(self) -> tuple[int, ...]:
        """Steps, in order and before the last, after which the answers count too."""
        return ()

    @property
    def step_loop(self) -> str:
        """Steps driven from ``python`` or ``compiled`` in one loop; ``auto``."""
        return "auto"

    @property
    def phases(self) -> tuple["Adaptation", ...]:
        """What runs in a row; a later one starts from ``adapted`` of the one before."""
        return (self,)

    @abc.abstractmethod
    def init(self, key: Key[Array, ""], model: Model, task: Task) -> PyTree:
        """Give the state before the first step."""

    @abc.abstractmethod
    def step(self, state: PyTree, task: Task, key: Key[Array, ""]) -> PyTree:
        """Give the state after one more step."""

    @abc.abstractmethod
    def classify(self, state: PyTree, task: Task) -> Float[Array, "q c"]:
        """Give class distances of the queries; the smallest is the answer."""

    def adapted(self, state: PyTree) -> Model | None:
        """Give the model as it was fitted; None if there is none to go on with."""
        del state
        return None

    def features(self, state: PyTree, task: Task) -> Float[Array, "n d"] | None:
        """Give the fitted model's features of the task's images, for pictures."""
        if (model := self.adapted(state)) is None:
            return None
        edge = model.preprocessing.edge_at(self.image_size)
        return model.embed(test_images(task, self.image_size, edge))

    def __call__(self, task: Task, model: Model | None = None) -> Float[Array, "q c"]:
        """Take all steps in one program, and answer."""
        if model is None or task.key is None:
            raise ValueError(f"method {self.name} needs a model and a task with a key")
        return answers(self, model, task)[-1]


def test_images(
    task: Task, size: int, edge: int | None = None
) -> Float[Array, "n size size 3"]:
    """Transform the task's images, supports first, as the network expects them."""
    return test_batch(jnp.concatenate([task.support, task.query]), size, edge)


def answers(method: Adaptation, model: Model, task: Task) -> Float[Array, "m q c"]:
    """Give class distances after each recorded step and the last, in one program."""

    def begin(phase: Adaptation, number: int, before: Before) -> PyTree:
        return start_phase(phase, number, before, model, task)

    def advance(phase: Adaptation, state: PyTree, start: int, stop: int) -> PyTree:
        def body(number: Int[Array, ""], state: PyTree) -> PyTree:
            return phase.step(state, task, jax.random.fold_in(task.key, number))

        return lax.fori_loop(start, stop, body, state)

    states = trajectory(method, begin, advance)
    return jnp.stack([phase.classify(state, task) for phase, state in states])


def start_phase(
    phase: Adaptation, number: int, before: Before, model: Model | None, task: Task
) -> PyTree:
    """Give the state before a phase's first step, which has this number."""
    if before is not None:
        model = before[0].adapted(before[1])
    if model is None:
        raise ValueError(f"{type(phase).__name__} needs a model from the phase before")
    return phase.init(jax.random.fold_in(task.key, _INIT + number), model, task)


def trajectory(
    method: Adaptation,
    begin: Callable[[Adaptation, int, Before], PyTree],
    advance: Callable[[Adaptation, PyTree, int, int], PyTree],
) -> Iterator[tuple[Adaptation, PyTree]]:
    """Go through the phases of a method, whoever drives the steps.

    Steps are numbered through all phases.

    Args:
      method: What is run.
      begin: From a phase, the number of its first step, and the phase before it with
        the state that was left, to its state.
      advance: From a phase and its state to that after the steps ``start … stop-1``.

    Yields:
      The phase and its state after each recorded step, and after the last one. A state
      must be used before the next one is asked for, which may take its memory.
    """
    start, before = 0, None
    for phase in method.phases:
        state = begin(phase, start, before)
        end = start + phase.steps
        for stop in [number for number in method.recorded if start <= number < end]:
            state = advance(phase, state, start, stop)
            yield phase, state
            start = stop
        before = phase, advance(phase, state, start, end)
        start = end
    assert before is not None
    yield before
