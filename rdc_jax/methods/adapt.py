"""Methods that fit the model to each task before they answer.

One protocol, of pure functions of one task: ``init`` once, ``step`` as often as
``steps`` says, then ``classify``. The caller vmaps over tasks, whose models differ but
start from the same one.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.core.params import RDCParams
from rdc_jax.data.transforms import test_batch
from rdc_jax.methods.base import FeatureMethod, Method, Task, get_method
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
      answer: Method on features that answers by the fitted model's features, as
        ``rdc`` or ``rdc_plus``; empty: the method's own way.
      rdc: How distances are calibrated, where RDC answers.
    """

    inputs = "images"

    image_size: int = 224
    answer: str = ""
    rdc: RDCParams = RDCParams()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.answer and not isinstance(self.answering, FeatureMethod):
            raise UserError(f"answer={self.answer}: choose a method on features")

    @property
    def answering(self) -> Method:
        """The method called ``answer``, with these parameters of RDC; or this one."""
        return get_method(self.answer, rdc=self.rdc) if self.answer else self

    @property
    def source_images(self) -> int:
        """How many images of ``config.source`` each step gets as distractors."""
        return 0

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse filling, no JAX programs, and what ``answer`` would refuse."""
        super().check(task, model)
        if self.answer:
            self.answering.check(task)
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

    def distances(self, state: PyTree, task: Task) -> Float[Array, "q c"]:
        """Give class distances by ``answer``: of ``classify``, or of another method."""
        if not self.answer:
            return self.classify(state, task)
        if (feat_nd := self.features(state, task)) is None:
            raise UserError(f"method {self.name} has no features for {self.answer}")
        return self.answering(on_features(task, feat_nd))

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


def on_features(task: Task, feat_nd: Float[Array, "n d"]) -> Task:
    """Put features in the place of the task's images, supports first."""
    s = len(task.support_labels)
    return task.replace(support=feat_nd[:s], query=feat_nd[s:])


def answers(method: Adaptation, model: Model, task: Task) -> Float[Array, "m q c"]:
    """Give class distances after each recorded step and the last, in one program.

    Distractors have a leading axis of steps here, through all phases.
    """

    def at(number: int | Int[Array, ""]) -> Task:
        of_step = jax.tree.map(lambda x: jnp.asarray(x)[number], task.distractors)
        return task.replace(distractors=of_step)

    def begin(phase: Adaptation, number: int, before: Before) -> PyTree:
        return start_phase(phase, number, before, model, at(number))

    def advance(phase: Adaptation, state: PyTree, start: int, stop: int) -> PyTree:
        def body(number: Int[Array, ""], state: PyTree) -> PyTree:
            key = jax.random.fold_in(task.key, number)
            return phase.step(state, at(number), key)

        return lax.fori_loop(start, stop, body, state)

    states = trajectory(method, begin, advance)
    return jnp.stack([phase.distances(state, task) for phase, state in states])


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
