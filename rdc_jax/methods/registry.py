"""What a method is, and the names that methods go by."""

import dataclasses
import difflib
import importlib.util
import pathlib
import sys
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple, NoReturn, TypeVar

import jax
from jaxtyping import Array, Float, Int

from rdc_jax.core.params import RDCParams
from rdc_jax.methods.adapt import Apply, Finetuner
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.runtime.errors import UserError

Needs = Literal["features", "images"]


class Episode(NamedTuple):
    """What a method that needs features may see of one task: no labels of queries.

    Attributes:
      support: Features of the labelled images.
      support_labels: Their classes, 0 … c-1.
      query: Features of the images to classify, in random order.
    """

    support: Float[Array, "s d"]
    support_labels: Int[Array, " s"]
    query: Float[Array, "q d"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What is the same for all tasks.

    Attributes:
      num_classes: Classes of a task.
      rdc: The fields of ``config.rdc``.
      finetune: The fields of ``config.finetune``.
      image_size: Edge of the network's input in pixels.
    """

    num_classes: int
    rdc: RDCParams = dataclasses.field(default_factory=RDCParams)
    finetune: FinetuneOptions = dataclasses.field(default_factory=FinetuneOptions)
    image_size: int = 224


Classify = Callable[[Episode, Settings], jax.Array]
MakeFinetuner = Callable[[Apply, Settings], Finetuner]
ClassifyT = TypeVar("ClassifyT", bound=Classify)
MakeT = TypeVar("MakeT", bound=MakeFinetuner)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
    """A way to classify the queries of a task.

    Attributes:
      name: What it is asked for by.
      title: What tables call it.
      transductive: Whether a query's answer depends on the other queries.
      calibrates: Whether it works by the neighbour sets of ``config.rdc``.
      needs: ``features``, computed once for a data set, or the ``images`` of a task.
    """

    name: str
    title: str
    transductive: bool
    calibrates: bool
    needs: ClassVar[Needs]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureMethod(Method):
    """A method that takes the network's features as they are.

    Attributes:
      classify: From one episode to class distances ``[q, c]``; a pure function of
        arrays, which the engine jits and vmaps. The smallest distance is the answer.
    """

    classify: Classify
    needs: ClassVar[Needs] = "features"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageMethod(Method):
    """A method that fits the network to each task.

    Attributes:
      make: From the network and the settings to pure functions of one task; see
        ``rdc_jax.methods.adapt``.
    """

    make: MakeFinetuner
    needs: ClassVar[Needs] = "images"

    def options(self, settings: Settings) -> FinetuneOptions:
        """Tell how it fine-tunes under these settings."""

        def no_network(variables: object, images: jax.Array, train: bool) -> NoReturn:
            raise NotImplementedError

        return self.make(no_network, settings).options


_METHODS: dict[str, Method] = {}


def register(
    name: str, *, title: str, transductive: bool, calibrates: bool = False
) -> Callable[[ClassifyT], ClassifyT]:
    """Make a function of features known as a method; to be used as a decorator.

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.methods import register
      >>> @register("inner_product", title="Inner product", transductive=False)
      ... def inner_product(episode, settings):
      ...     mean_cd = jnp.zeros((settings.num_classes, episode.query.shape[1]))
      ...     mean_cd = mean_cd.at[episode.support_labels].add(episode.support)
      ...     return -episode.query @ mean_cd.T

    Args:
      name: A word; ``config.methods`` lists such words.
      title: What tables call it.
      transductive: Whether a query's answer may depend on the other queries.
      calibrates: Whether it works by the neighbour sets of ``settings.rdc``; then
        ``k`` is checked against the task's size and the sets are diagnosed.

    Returns:
      A decorator that gives the function back as it was.

    Raises:
      UserError: The name is taken, or no word.
    """
    _check_name(name)

    def decorate(classify: ClassifyT) -> ClassifyT:
        _METHODS[name] = FeatureMethod(
            name=name,
            title=title,
            transductive=transductive,
            calibrates=calibrates,
            classify=classify,
        )
        return classify

    return decorate


def register_finetuning(
    name: str, *, title: str, transductive: bool, calibrates: bool = False
) -> Callable[[MakeT], MakeT]:
    """Make a way to fine-tune known as a method; to be used as a decorator.

    The function takes the network (``rdc_jax.methods.adapt.Apply``) and the
    settings, and gives a ``Finetuner``. Arguments are those of ``register``.
    """
    _check_name(name)

    def decorate(make: MakeT) -> MakeT:
        _METHODS[name] = ImageMethod(
            name=name,
            title=title,
            transductive=transductive,
            calibrates=calibrates,
            make=make,
        )
        return make

    return decorate


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise UserError(f"method name {name!r}: use letters, digits and underscores")
    if name in _METHODS:
        raise UserError(f"there is a method {name!r} already: choose another name")


def find(name: str) -> Method:
    """Give the method of that name.

    >>> find("rdc").transductive
    True
    """
    if name in _METHODS:
        return _METHODS[name]
    close = difflib.get_close_matches(name, _METHODS, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UserError(f"unknown method {name!r}: {meant}known are {', '.join(_METHODS)}")


def names() -> tuple[str, ...]:
    """List the methods, in the order they were registered."""
    return tuple(_METHODS)


def load_plugin(path: str | pathlib.Path) -> pathlib.Path:
    """Run a Python file that registers methods; a second time does nothing.

    Args:
      path: The file.

    Returns:
      Its absolute path.

    Raises:
      UserError: There is no such file, or it failed.
    """
    path = pathlib.Path(path).expanduser().resolve()
    module_name = f"rdc_jax_plugin_{path}"
    if module_name in sys.modules:
        return path
    if path.suffix != ".py" or not path.is_file():
        raise UserError(f"plugin {path} is not there: give the path of a Python file")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"plugin {path} failed with {reason}") from error
    sys.modules[module_name] = module
    return path
