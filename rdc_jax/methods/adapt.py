"""Methods that fit the model to each task before they answer.

One protocol, of pure functions of one task: ``init`` once, ``step`` as often as
``steps`` says, then ``classify``. The caller vmaps over tasks, whose models differ but
start from the same one.
"""

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

PyTree = Any

_INIT = 2**31  # Added to a step's number for the key of ``init``, which is no step's.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adaptation(Method):
    """A method that fits the model to each task.

    A subclass has ``steps``, a field or a property, and ``init``, ``step`` and
    ``classify``. A state is any pytree; it holds all that the later calls need of the
    model.

    Attributes:
      image_size: Edge of the network's input in pixels; tasks have larger images, as
        decoded, of which the test transform takes the centre.
      source_images: How many images of ``config.source`` each task carries as
        distractors; a class attribute.
    """

    inputs = "images"
    source_images: ClassVar[int] = 0

    image_size: int = 224

    @property
    def steps(self) -> int:
        """How often ``step`` is called."""
        raise NotImplementedError

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

    def init(self, key: Key[Array, ""], model: Model, task: Task) -> PyTree:
        """Give the state before the first step."""
        raise NotImplementedError

    def step(self, state: PyTree, task: Task, key: Key[Array, ""]) -> PyTree:
        """Give the state after one more step."""
        raise NotImplementedError

    def classify(self, state: PyTree, task: Task) -> Float[Array, "q c"]:
        """Give class distances of the queries; the smallest is the answer."""
        raise NotImplementedError

    def adapted(self, state: PyTree) -> Model:
        """Give the model as it was fitted: where a next phase starts."""
        raise NotImplementedError

    def features(self, state: PyTree, task: Task) -> Float[Array, "n d"]:
        """Give the fitted model's features of the task's images, for pictures."""
        return self.adapted(state).embed(test_images(task, self.image_size))

    def __call__(self, task: Task, model: Model | None = None) -> Float[Array, "q c"]:
        """Take all steps in one program, and answer."""
        if model is None or task.key is None:
            raise ValueError(f"method {self.name} needs a model and a task with a key")
        return answers(self, model, task)[-1]


def test_images(task: Task, size: int) -> Float[Array, "n size size 3"]:
    """Transform the task's images, supports first, as the network expects them."""
    return test_batch(jnp.concatenate([task.support, task.query]), size)


def answers(method: Adaptation, model: Model, task: Task) -> Float[Array, "m q c"]:
    """Give class distances after each recorded step and the last, in one program."""

    def begin(phase: Adaptation, number: int, start: Model) -> PyTree:
        return phase.init(init_key(task, number), start, task)

    def advance(phase: Adaptation, state: PyTree, start: int, stop: int) -> PyTree:
        def body(number: Int[Array, ""], state: PyTree) -> PyTree:
            return phase.step(state, task, jax.random.fold_in(task.key, number))

        return lax.fori_loop(start, stop, body, state)

    def follow(
        phase: Adaptation, number: int, last: Adaptation, state: PyTree
    ) -> PyTree:
        return begin(phase, number, last.adapted(state))

    states = trajectory(method, lambda p: begin(p, 0, model), follow, advance)
    return jnp.stack([phase.classify(state, task) for phase, state in states])


def init_key(task: Task, number: int) -> Key[Array, ""]:
    """Give the key of the phase whose first step has this number."""
    return jax.random.fold_in(task.key, _INIT + number)


def trajectory(
    method: Adaptation,
    begin: Callable[[Adaptation], PyTree],
    follow: Callable[[Adaptation, int, Adaptation, PyTree], PyTree],
    advance: Callable[[Adaptation, PyTree, int, int], PyTree],
) -> Iterator[tuple[Adaptation, PyTree]]:
    """Go through the phases of a method, whoever drives the steps.

    Steps are numbered through all phases.

    Args:
      method: What is run.
      begin: Makes the first phase's state.
      follow: From a phase, the number of its first step, the phase before it and the
        state that was left, to its state.
      advance: From a phase and its state to that after the steps ``start … stop-1``.

    Yields:
      The phase and its state after each recorded step, and after the last one. A state
      must be used before the next one is asked for, which may take its memory.
    """
    start, last, state = 0, None, None
    for phase in method.phases:
        state = begin(phase) if last is None else follow(phase, start, last, state)
        end = start + phase.steps
        for stop in [number for number in method.recorded if start <= number < end]:
            state = advance(phase, state, start, stop)
            yield phase, state
            start = stop
        state = advance(phase, state, start, end)
        start, last = end, phase
    assert last is not None
    yield last, state
