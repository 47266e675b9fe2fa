"""What a step of training minimises: the protocol of objectives, and their names."""

import abc
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdc_jax.methods import parameters
from rdc_jax.models.backbones import BACKBONES, create
from rdc_jax.models.model import Spec, Variables
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.registry import Registry

Batches = Literal["images", "tasks", "domains"]


class Batch(NamedTuple):
    """What a loss sees of one step.

    Attributes:
      images: Augmented and normalised; of a task, the supports first, class by class.
      labels: Classes of the data set; of a task, its own, 0 … way-1.
    """

    images: Float[Array, "b h w 3"]
    labels: Int[Array, " b"]


class Embedded(Batch):
    """A batch whose ``images`` are what a network that stays as it is makes of them."""


class Domains(NamedTuple):
    """Which batches an objective on several source domains takes.

    A batch is of shuffled images of the training source, a task of one domain, and a
    task of another.

    Attributes:
      names: Sources beside that of the training, which is the first domain.
      split: Their split.
      images: Number of shuffled images.
      redraw: Steps between draws of the two domains.
    """

    names: tuple[str, ...]
    split: str
    images: int
    redraw: int


class Aux(NamedTuple):
    """What a loss gives beside its value.

    Attributes:
      metrics: Numbers to log; ``accuracy`` is a share of 1.
      batch_stats: The batch-norm statistics after this batch.
    """

    metrics: dict[str, Float[Array, ""]]
    batch_stats: dict[str, Any]


@runtime_checkable
class Objective(Protocol):
    """A loss, and the model whose weights it moves.

    An implementation is a frozen dataclass of pure functions. It may wrap another
    objective: give the other's ``init``, and call its ``loss`` on other images, in eval
    mode for gradients, or beside a loss of its own.

    Where a step does not follow the gradient of one loss, two more functions say what
    it does: ``gradients(variables, batch, key, step)`` gives ``(loss, aux), grads`` in
    the place of ``jax.value_and_grad`` of ``loss``, and ``optimiser(of_run)`` the optax
    transformation for these.

    One whose loss sees nothing of the network but what its head takes says
    ``takes_embedded = True``, and may be given an ``Embedded`` batch.
    """

    @property
    def spec(self) -> Spec:
        """The model, as its checkpoints are loaded."""

    @property
    def batches(self) -> Batches:
        """Whether a step takes shuffled ``images``, one few-shot task, or ``domains``.

        An objective on ``domains`` says in a field of this name which.
        """

    @property
    def method(self) -> str:
        """Name of the method that answers the tasks of validation."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of ``Aux.metrics``."""

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw all weights: ``params`` and ``batch_stats``, a dict by part each.

        Args:
          key: Random key for the first weights.
          size: Edge of the images.
        """

    def loss(
        self,
        variables: Variables,
        batch: Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], Aux]:
        """Compute the loss of one batch.

        Args:
          variables: As of ``init``; the gradient is taken to ``params``.
          batch: Images or a task.
          key: Of this step.
          train: Normalise by the batch's statistics; else by the running ones.
        """


@dataclasses.dataclass(frozen=True)
class Wrapper(abc.ABC):
    """An objective that is another one in all but its loss; to be inherited.

    Attributes:
      inner: The other objective.
    """

    inner: Objective
    own_metrics: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if hasattr(self.inner, "gradients"):
            raise UserError(
                f"{type(self).__name__} cannot wrap {type(self.inner).__name__}, whose "
                "gradients are not of one loss: put that one last in --config.method"
            )

    @property
    def spec(self) -> Spec:
        """The other's."""
        return self.inner.spec

    @property
    def batches(self) -> Batches:
        """The other's."""
        return self.inner.batches

    @property
    def method(self) -> str:
        """The other's."""
        return self.inner.method

    @property
    def metrics(self) -> tuple[str, ...]:
        """The other's, and ``own_metrics``."""
        return (*self.inner.metrics, *self.own_metrics)

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the other's weights."""
        return self.inner.init(key, size)

    @abc.abstractmethod
    def loss(
        self,
        variables: Variables,
        batch: Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], Aux]:
        """Compute the loss of one batch, as of ``Objective``."""


OBJECTIVES: Registry[Objective] = Registry("objective")

# Between objectives, not in the brackets of one.
_PLUS = re.compile(r"\+(?![^(]*\))")

register = OBJECTIVES.register
"""Decorates a function that makes an objective, and gives it a name.

The function takes the run's ``Options`` and the number of base classes. What else it
takes, by keyword, are parameters, read as the type that they have by default.
"""


def get_objective(text: str) -> Callable[[Options, int], Objective]:
    """Give the function that makes an objective.

    Args:
      text: ``name`` or ``name(parameter=value;parameter=value)``. What wraps another
        objective, and so has a parameter ``inner``, may stand behind it with a plus
        sign: ``protonet+ata(steps=2)`` is ``ata(inner=protonet;steps=2)``.

    Raises:
      UserError: There is no such objective, or parameter, or value.
    """
    *inner, last = _PLUS.split(text)
    name, pairs = parameters.split(last)
    make = OBJECTIVES.find(name)
    _, _, *own = inspect.signature(make).parameters.values()
    defaults = {parameter.name: parameter.default for parameter in own}
    if inner and "inner" not in defaults:
        raise UserError(f"objective {text!r}: {name} wraps no other objective")
    pairs |= {"inner": "+".join(inner)} if inner else {}
    try:
        values = {n: parameters.read(v, defaults[n]) for n, v in pairs.items()}
    except (KeyError, ValueError) as error:
        known = ", ".join(defaults) or "none"
        raise UserError(
            f"objective {text!r}: {error}; its parameters are {known}"
        ) from None
    if "inner" in values:
        get_objective(values["inner"])  # Fails on a wrong name now.
    return functools.partial(make, **values)


def gradients(
    objective: Objective,
    variables: Variables,
    batch: Batch,
    key: PRNGKeyArray,
    step: Int[Array, ""],
) -> tuple[tuple[Float[Array, ""], Aux], Variables]:
    """Give the loss with its aux, and what the optimiser takes for ``params``."""
    if own := getattr(objective, "gradients", None):
        return own(variables, batch, key, step)

    def loss_of(params: Variables) -> tuple[Float[Array, ""], Aux]:
        return objective.loss({**variables, "params": params}, batch, key)

    return jax.value_and_grad(loss_of, has_aux=True)(variables["params"])


def spec_of(options: Options, **parts: Any) -> Spec:
    """Describe the model of a run: its backbone, and a ``head`` or ``decoder``.

    Raises:
      UserError: The backbone has no norm to put another one in the place of.
    """
    spec = Spec(
        options.arch,
        options.arch_options,
        dtype=options.dtype,
        conv=options.conv,
        preprocessing=options.preprocessing,
        **parts,
    )
    if options.last_norm is None:
        return spec
    if "last_norm" not in inspect.signature(BACKBONES.find(options.arch)).parameters:
        raise UserError(
            f"objective {options.method!r} changes the last norm of residual blocks, "
            f"which {options.arch} has not: set --config.arch=resnet10"
        )
    network = create(
        spec.arch,
        dtype=spec.dtype,
        conv=spec.conv,
        last_norm=options.last_norm,
        **dict(spec.arch_options),
    )
    return dataclasses.replace(spec, network=network)


def classify(
    logits_bc: Float[Array, "b c"],
    labels_b: Int[Array, " b"],
    batch_stats: dict[str, Any],
    *,
    smoothing: float = 0.0,
) -> tuple[Float[Array, ""], Aux]:
    """Give the cross-entropy of logits and their accuracy, as ``Objective.loss`` does.

    Args:
      logits_bc: One row an image.
      labels_b: Their classes, 0 … c-1.
      batch_stats: For ``Aux``.
      smoothing: Share of the target that is spread over all classes.
    """
    targets_bc = jax.nn.one_hot(labels_b, logits_bc.shape[-1])
    targets_bc = optax.smooth_labels(targets_bc, smoothing)
    loss = optax.softmax_cross_entropy(logits_bc, targets_bc).mean()
    accuracy = jnp.mean(jnp.argmax(logits_bc, -1) == labels_b)
    return loss, Aux({"accuracy": accuracy}, batch_stats)
