"""What a task and a method are, and the names that methods go by."""

import abc
import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar, cast, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from rdc_jax.core.checks import checked_jit
from rdc_jax.core.preparation import Step, prepare
from rdc_jax.core.shapes import check_episode
from rdc_jax.methods import parameters
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

Inputs = Literal["features", "maps", "images"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """What a method may see of one task: no labels of queries. A pytree.

    Labels outside of 0 … c-1 belong to no class. Padded rows may hold anything, NaN
    too, and change no answer.

    Attributes:
      support: Features ``[s, d]`` or images ``[s, h, w, 3]`` with labels.
      support_labels: Their classes, ``[s]``.
      query: What is to be classified, ``[q, ...]``, in random order.
      num_classes: c, static.
      support_mask: ``[s]``, False on padding.
      query_mask: ``[q]``, False on padding.
      key: For what is random in a method, other for each task.
      distractors: Images (or features) of the source data set and their labels there,
        a pair of arrays, for methods that ask for them.
      num_source_classes: Of the distractors' labels, static; 0 without distractors.
    """

    support: Any
    support_labels: Any
    query: Any
    num_classes: int = dataclasses.field(metadata={"static": True})
    support_mask: Any = None
    query_mask: Any = None
    key: Any = None
    distractors: Any = None
    num_source_classes: int = dataclasses.field(default=0, metadata={"static": True})

    def replace(self, **changes: Any) -> "Task":
        """Give the same task with other fields."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method(abc.ABC):
    """A way to classify the queries of a task; its fields are its parameters.

    A subclass is a frozen dataclass. A field that is itself a dataclass is a group of
    parameters, whose defaults are those of the config's group of that name; in text its
    parameters stand beside the others, as in ``rdc_ft(k=6;steps=10)``.

    Attributes:
      name: What it is asked for by, set by ``register``.
      title: What tables call it.
      transductive: Whether a query's answer may depend on the other queries.
      assumes_balance: Whether it takes all classes to have as many queries.
      inputs: What the rows of its tasks are: ``features`` of a network, the ``maps``
        before its pooling, or ``images``.
      uses_neighbours: Whether it works by neighbour sets, which are then diagnosed.
      head: Name of the head that the model must have.
      trained_by: Objectives of pre-training that it can answer with; empty: any.
      fixed: What ``register`` fixed of its groups, by parameter.
      preferred: What it takes for parameters of its groups, unless the text that asks
        for it says otherwise, in the place of what the config has.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    transductive: ClassVar[bool]
    assumes_balance: ClassVar[bool] = False
    inputs: ClassVar[Inputs] = "features"
    uses_neighbours: ClassVar[bool] = False
    head: ClassVar[str | None] = None
    trained_by: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[Mapping[str, Any]] = {}
    preferred: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        for group, changed in parameters.in_groups(self, self.fixed).items():
            object.__setattr__(self, group, changed)

    @property
    def answering(self) -> "Method":
        """What answers in the end: the method itself, unless it only makes features."""
        return self

    @abc.abstractmethod
    def __call__(self, task: Task, model: Model | None = None) -> Float[Array, "q c"]:
        """Give class distances of the queries; the class of the smallest is the answer.

        A pure function of one task; the caller vmaps and jits.

        Args:
          task: With rows as ``inputs`` says.
          model: What made the features; needed if ``head`` is set.
        """

    def told(
        self, task: Task, model: Model | None, labels_q: Int[Array, " q"]
    ) -> Float[Array, "q c"]:
        """Give the answers that are counted: those of ``__call__``.

        The labels are for a method alone whose purpose is to measure what they are
        worth, and whose title says so.
        """
        del labels_q
        return self(task, model)

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse tasks and models that the method cannot use, before long work.

        Args:
          task: Shapes are enough (``jax.ShapeDtypeStruct``).
          model: What it is to answer with, if known.

        Raises:
          UserError: What does not fit.
        """
        if model is None:
            return
        has, trained = model.spec.head, model.metadata.get("method") or ""
        if self.head not in (None, has):
            raise UserError(
                f"it needs a model with a {self.head} head, this checkpoint has "
                f"{has or 'none'}: give one that was trained with it"
            )
        fit = trained.partition("(")[0] in self.trained_by or not self.trained_by
        # An objective of one's own may train for this method too.
        fit = fit or model.metadata.get("validated_by") == self.name
        if not fit and (trained or has):
            raise UserError(
                f"it needs a model trained by {' or '.join(self.trained_by)}, this one "
                f"was trained by {trained or 'a classifier'}: give another checkpoint"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureMethod(Method):
    """A method whose only input is the features of a task.

    Attributes:
      prepare: Steps of ``rdc_jax.prepare`` that the features go through first, as
        ``prepare=power+l2`` in text; ``none`` for no step.
      views: How many views of an image the features are of; 0, as for ``layers``: what
        ``config.features`` says.
      layers: Layers of the network, as ``layers=features+block3:0.7`` in text.
    """

    prepare: tuple[str, ...] = ()
    views: int = 0
    layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if "".join(self.prepare) == "none":
            object.__setattr__(self, "prepare", ())
        for step in self.prepare:
            if step not in get_args(Step):
                raise ValueError(f"choose steps from {', '.join(get_args(Step))}")

    def __call__(self, task: Task, model: Model | None = None) -> Float[Array, "q c"]:
        """Prepare the features, then classify."""
        del model
        return self.class_distances(prepared(task, self.prepare))

    @abc.abstractmethod
    def class_distances(self, task: Task) -> Float[Array, "q c"]:
        """Give class distances of the queries, from features that are prepared."""


def prepared(task: Task, steps: Sequence[str]) -> Task:
    """Give the task with its features prepared, see ``rdc_jax.prepare``."""
    if not steps:
        return task
    s = len(task.support_labels)
    rows_nd = jnp.concatenate([task.support, task.query])
    feat_np = prepare(
        rows_nd,
        cast(Sequence[Step], steps),
        mask=row_mask(task),
        support_labels=task.support_labels,
    )
    return task.replace(support=feat_np[:s], query=feat_np[s:])


def row_mask(task: Task) -> Array | None:
    """Which rows, supports first, are no padding; None: all of them."""
    if task.support_mask is None and task.query_mask is None:
        return None
    masks = (
        (task.support_mask, len(task.support)),
        (task.query_mask, len(task.query)),
    )
    parts = [jnp.ones(n, bool) if mask is None else mask for mask, n in masks]
    return jnp.concatenate(parts)


_METHODS: dict[str, type[Method]] = {}
MethodT = TypeVar("MethodT", bound=Method)


def register(name: str, **fixed: Any) -> Callable[[type[MethodT]], type[MethodT]]:
    """Make a method known by a name; a class decorator.

    Example:
      >>> import dataclasses
      >>> import jax.numpy as jnp
      >>> from rdc_jax.methods import FeatureMethod, register
      >>> @register("inner_product")
      ... @dataclasses.dataclass(frozen=True, kw_only=True)
      ... class InnerProduct(FeatureMethod):
      ...     title = "Inner product"
      ...     transductive = False
      ...     scale: float = 1.0
      ...     def class_distances(self, task):
      ...         mean_cd = jnp.zeros((task.num_classes, task.query.shape[1]))
      ...         mean_cd = mean_cd.at[task.support_labels].add(task.support)
      ...         return -self.scale * task.query @ mean_cd.T

    Args:
      name: A word; ``config.methods`` lists such words.
      **fixed: Parameters of its groups that make the method what it is, as
        ``subspace="none"``: it has them no more.

    Returns:
      A decorator that gives the class back as it was.

    Raises:
      UserError: The name is taken, or no word.
    """
    if not name.isidentifier():
        raise UserError(f"method name {name!r}: use letters, digits and underscores")
    if name in _METHODS:
        raise UserError(f"there is a method {name!r} already: choose another name")

    def decorate(kind: type[MethodT]) -> type[MethodT]:
        kind.name, kind.fixed = name, fixed
        _METHODS[name] = kind
        return kind

    return decorate


def get_method(text: str, **groups: Any) -> Method:
    """Give a method by its name, with the parameters that may follow it.

    Example:
      >>> from rdc_jax.methods import get_method
      >>> get_method("rdc(k=6;lam=0.3)").rdc.k
      6

    Args:
      text: ``name`` or ``name(parameter=value;parameter=value)``; a list in a value has
        plus signs, as in ``layers=block3+block4``.
      **groups: Defaults of groups of parameters, by name, as ``rdc=RDCParams(k=6)``;
        methods that have no such group leave them.

    Raises:
      UserError: There is no such method, or parameter, or value.
    """
    name, pairs = parameters.split(text)
    if name not in _METHODS:
        close = difflib.get_close_matches(name, _METHODS, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        known = ", ".join(_METHODS)
        raise UserError(f"unknown method {name!r}: {meant}known are {known}")
    method = _METHODS[name]()
    own = {field.name for field in dataclasses.fields(method)}
    defaults = {group: value for group, value in groups.items() if group in own}
    method = dataclasses.replace(method, **defaults)
    preferred = parameters.in_groups(method, method.preferred)
    return parameters.replaced(dataclasses.replace(method, **preferred), pairs, text)


def jitted(text: str) -> Callable[..., Array]:
    """Give a method on features as a jitted function; ``rdc_jax.get`` describes it."""
    method = get_method(text)
    if method.inputs != "features" or method.head:
        needs = f"a model with a {method.head} head" if method.head else method.inputs
        raise UserError(f"method {text!r} needs {needs}: see docs/extending.md")
    if isinstance(method, FeatureMethod) and (method.views or method.layers):
        raise UserError(
            f"method {text!r}: here the features are yours; leave views out"
        )

    def classify(
        support: ArrayLike,
        support_labels: ArrayLike,
        query: ArrayLike,
        *,
        num_classes: int,
        support_mask: ArrayLike | None = None,
        query_mask: ArrayLike | None = None,
        key: Array | None = None,
    ) -> Array:
        check_episode(support, support_labels, query, num_classes)
        task = Task(
            jnp.asarray(support),
            jnp.asarray(support_labels),
            jnp.asarray(query),
            num_classes=num_classes,
            support_mask=support_mask,
            query_mask=query_mask,
            key=key,
        )
        return method(task)

    return checked_jit(classify, "num_classes")


def names() -> tuple[str, ...]:
    """List the methods, in the order they were registered."""
    return tuple(_METHODS)
