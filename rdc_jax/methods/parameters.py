"""Parameters of methods as text: ``rdc(k=6;lam=0.3)``, ``rdc_ft(target=fixed)``."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from rdc_jax.runtime.errors import UserError

MethodT = TypeVar("MethodT", bound=Any)  # A frozen dataclass with ``fixed``.


def split(text: str) -> tuple[str, dict[str, str]]:
    """Take a method's text apart.

    >>> split("rdc(k=6;lam=0.3)")
    ('rdc', {'k': '6', 'lam': '0.3'})

    Raises:
      UserError: It is not written like this.
    """
    name, bracket, rest = text.partition("(")
    pairs = {}
    for part in rest.removesuffix(")").split(";") if bracket else ():
        parameter, equals, value = (piece.strip() for piece in part.partition("="))
        if not (parameter and equals and value and rest.endswith(")")):
            raise UserError(
                f"method {text!r}: write parameters as in rdc(lam=0.3;k=6), in quotes"
            )
        pairs[parameter] = value
    return name.strip(), pairs


def groups_of(method: Any) -> dict[str, str]:
    """Map each parameter to the field that is its group; to "" without a group."""
    owners: dict[str, str] = {}
    for field in dataclasses.fields(method):
        group = getattr(method, field.name)
        if dataclasses.is_dataclass(group):
            inner = dataclasses.fields(group)
            owners |= {parameter.name: field.name for parameter in inner}
        else:
            owners[field.name] = ""
    return owners


def in_groups(method: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the groups of a method, by field, with other values of some parameters."""
    owners, changed = groups_of(method), dict[str, Any]()
    for name, value in values.items():
        group = owners[name]
        old = changed.get(group, getattr(method, group))
        changed[group] = dataclasses.replace(old, **{name: value})
    return changed


def replaced(method: MethodT, pairs: Mapping[str, str], text: str) -> MethodT:
    """Give the method with other values of its parameters.

    Args:
      method: A frozen dataclass.
      pairs: Values as text, each read as the type that the parameter has by default.
      text: What the user wrote, for messages.

    Raises:
      UserError: The method has no such parameter, or the value is not possible.
    """
    owners = {
        name: group
        for name, group in groups_of(method).items()
        if name not in method.fixed
    }
    for name, value in pairs.items():
        if name not in owners:
            known = ", ".join(owners) or "none"
            raise UserError(f"method {text!r}: no parameter {name!r}; it has {known}")
        try:
            method = _set(method, owners[name], name, value)
        except (TypeError, ValueError) as error:
            raise UserError(f"method {text!r}: {name}={value}: {error}") from error
    return method


def _set(method: MethodT, group: str, name: str, value: str) -> MethodT:
    owner = getattr(method, group) if group else method
    changed = dataclasses.replace(owner, **{name: read(value, getattr(owner, name))})
    return dataclasses.replace(method, **{group: changed}) if group else changed


def read(value: str, default: Any) -> Any:
    """Read a value as the type that a parameter has by default."""
    if isinstance(default, bool):
        if value not in ("True", "False"):
            raise ValueError("must be True or False")
        return value == "True"
    if isinstance(default, tuple):
        words = value.split("+")
        return tuple(int(word) if word.isdigit() else word for word in words)
    return type(default)(value)
