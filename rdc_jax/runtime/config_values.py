"""Values of a config: read, and refused where they are not possible."""

from collections.abc import Mapping
from typing import Any

from rdc_jax.runtime.errors import UserError

Shot = int | str
"""Labelled images a class, or in words what they are drawn by: 5, "1-10", "any"."""


def shot(text: str) -> Shot:
    """Read what a table calls its shots.

    >>> shot("5"), shot("1-10")
    (5, '1-10')
    """
    return int(text) if text.isdecimal() else text


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Give the values of a config by their whole names.

    >>> flat({"seed": 0, "rdc": {"k": 10}})
    {'seed': 0, 'rdc.k': 10}
    """
    values: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{name}.")
        else:
            values[f"{prefix}{name}"] = value
    return values


def words(name: str, text: str, *, empty: bool = False) -> tuple[str, ...]:
    """Read a comma-separated list without repetitions.

    >>> words("methods", "npc, rdc,npc")
    ('npc', 'rdc')
    """
    found = tuple(dict.fromkeys(w for word in text.split(",") if (w := word.strip())))
    if not (found or empty):
        raise UserError(f"config.{name} is empty: give names with commas, as in a,b")
    return found


def numbers(name: str, text: str) -> tuple[int, ...]:
    """Read a comma-separated list of whole numbers.

    >>> numbers("shots", "1,5")
    (1, 5)
    """
    try:
        return tuple(int(part) for part in str(text).split(","))
    except ValueError:
        raise UserError(
            f"config.{name} is {text!r}: give whole numbers with commas, as in 1,5"
        ) from None


def one_of(name: str, value: str | int, known: tuple[str | int, ...]) -> None:
    """Refuse a value that is not among the known ones."""
    if value not in known:
        choices = ", ".join(map(str, known))
        raise UserError(f"config.{name} is {value!r}: choose from {choices}")


def at_least(name: str, value: int | float, least: int | float) -> None:
    """Refuse a number below the least one (and NaN)."""
    if not value >= least:
        raise UserError(f"config.{name} is {value}: it must be at least {least:g}")


def below_one(name: str, value: int | float) -> None:
    """Refuse a share outside of [0, 1)."""
    if not 0 <= value < 1:
        raise UserError(f"config.{name} is {value}: it must be at least 0 and below 1")
