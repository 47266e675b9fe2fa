"""Checks of what a user gives to the public functions, before anything is compiled.

While a function is traced its arrays have shapes, but no values. So values are looked
at here, outside of ``jit``, where they are concrete; tracers are passed on untouched.
"""

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from rdc_jax.core.params import RDCParams
from rdc_jax.core.shapes import AXES, check_shapes

_P = ParamSpec("_P")
_T = TypeVar("_T")


def checked_jit(fn: Callable[_P, _T], *static: str) -> Callable[_P, _T]:
    """``jax.jit`` of a function of one task, with its arguments checked in each call.

    Lists, and arrays of other libraries, become arrays. Mistakes are a ``TypeError`` or
    a ``ValueError`` with the argument's name. Under ``jit``, ``vmap``, ``grad`` and
    ``shard_map`` that happens while tracing, and costs nothing later.

    Args:
      fn: Arrays among its arguments are named as in ``AXES``.
      *static: Names of static arguments.

    Returns:
      A function; its ``__wrapped__`` is the jitted one.
    """
    jitted = jax.jit(fn, static_argnames=static)
    signature = inspect.signature(fn)

    @functools.wraps(jitted)
    def function(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        given = signature.bind(*args, **kwargs).arguments
        arrays = {
            name: _as_array(name, given[name])
            for name in AXES
            if given.get(name) is not None
        }
        check_shapes(**arrays)
        given |= arrays
        _check_params(given.get("params", RDCParams()))
        if "num_classes" in given:
            given["num_classes"] = _static_int(given["num_classes"])
        if isinstance(given.get("steps"), list):  # static, so it must be hashable
            given["steps"] = tuple(given["steps"])
        _check_values(**given)
        return cast(Callable[..., _T], jitted)(**given)

    return function


def _check_params(params: Any) -> None:
    if not isinstance(params, RDCParams):
        kind = type(params).__name__
        raise TypeError(f"params must be rdc_jax.RDCParams(...), got {kind}")
    # Traced, it has no value.
    if isinstance(params.lam, (int, float)) and not 0 <= params.lam <= 1:
        raise ValueError(f"lam must be from 0 to 1, got {params.lam!r}")


def _as_array(name: str, value: Any) -> Any:
    """The argument as an array of numbers; integers if it is labels."""
    if not isinstance(value, (jax.Array, np.ndarray)):
        try:
            value = np.asarray(value)
        except jax.errors.TracerArrayConversionError:
            value = jnp.asarray(value)  # a list that holds tracers
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name} cannot be made an array: {error}") from error
    dtype = value.dtype
    if name == "support_labels" and not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"{name} must be integers, got {dtype}: number the classes")
    if not jnp.issubdtype(dtype, jnp.number) and dtype != np.bool_:
        raise TypeError(f"{name} must be an array of numbers, got {dtype}")
    return value


def _static_int(num_classes: Any) -> int:
    if isinstance(num_classes, jax.core.Tracer):
        raise TypeError(
            "num_classes decides shapes, so it must not be traced: bind it, as in "
            "jax.jit(functools.partial(rdc_jax.rdc, num_classes=5))"
        )
    try:
        return operator.index(num_classes)
    except TypeError as error:
        raise TypeError(f"num_classes must be an int, got {num_classes!r}") from error


def _check_values(
    *,
    support: Any = None,
    support_labels: Any = None,
    num_classes: int | None = None,
    support_mask: Any = None,
    **unused: Any,
) -> None:
    """Check supports and labels, unless a mask says that some are padding."""
    if num_classes is None or support_mask is not None:
        return
    if _is_concrete(support_labels):
        _check_labels(jax.device_get(support_labels), num_classes)
    if _is_concrete(support):
        finite_s = np.isfinite(jax.device_get(support)).all(axis=1)
        if not finite_s.all():
            raise ValueError(
                f"support has NaN or infinity in row {finite_s.argmin()}: leave such "
                "rows out, or set them False in support_mask"
            )


def _is_concrete(array: Any) -> bool:
    if isinstance(array, jax.core.Tracer):
        return False
    return not isinstance(array, jax.Array) or array.is_fully_addressable


def _check_labels(labels_s: np.ndarray, num_classes: int) -> None:
    """Raise unless labels are the classes 0 … c-1, each there, or -1: of no class."""
    known = {int(label) for label in labels_s} - {-1}
    outside = sorted(known - set(range(num_classes)))
    if outside:
        hint = f"give 0 … {num_classes - 1}, or -1 for a support of no class"
        if known == set(range(1, num_classes + 1)):
            hint = "classes count from 0, so give support_labels - 1"
        elif outside[0] >= num_classes:
            hint += f"; for more classes, num_classes={outside[-1] + 1}"
        raise ValueError(
            f"support_labels has {outside[0]}, with num_classes={num_classes}: {hint}"
        )
    empty = sorted(set(range(num_classes)) - known)
    if empty:
        raise ValueError(
            f"class {empty[0]} has no support, with num_classes={num_classes}: number "
            "the classes that have one from 0 (np.unique with return_inverse=True)"
        )
