"""Methods with parameters of their own: ``rdc(lam=0.3)``, ``rdc_ft(target=fixed)``.

So one run compares settings on the same tasks, and what they share is computed once.
"""

import dataclasses
import functools
from typing import Any

from jaxtyping import Array, Float

from rdc_jax.core.params import RDCParams
from rdc_jax.methods.adapt import Apply, Finetuner
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.methods.registry import (
    Episode,
    FeatureMethod,
    ImageMethod,
    Method,
    Settings,
    find,
)
from rdc_jax.runtime.errors import UserError

_DEFAULTS = {"rdc": RDCParams(), "finetune": FinetuneOptions()}
_OWNERS = {
    field.name: owner
    for owner, kind in (("rdc", RDCParams), ("finetune", FinetuneOptions))
    for field in dataclasses.fields(kind)
}


def find_variant(text: str) -> Method:
    """Give a method by its name, with the parameters that may follow it.

    >>> find_variant("rdc(lam=0.3;k=6)").title
    'RDC (lam=0.3, k=6)'

    Args:
      text: ``name`` or ``name(field=value;field=value)``. Fields are those of
        ``config.rdc`` and, for methods that fine-tune, ``config.finetune``; a list in a
        value has plus signs, as in ``layers=block3+block4``.

    Returns:
      The method, whose name is the text.

    Raises:
      UserError: There is no such method, or field, or value.
    """
    name, bracket, rest = text.partition("(")
    method = find(name)
    if not bracket:
        return method
    pairs = dict(_pair(text, part) for part in rest.removesuffix(")").split(";"))
    override = functools.partial(_override, text=text, pairs=tuple(pairs.items()))
    override(Settings(num_classes=2))  # So that mistakes are told now.
    title = f"{method.title} ({', '.join(f'{k}={v}' for k, v in pairs.items())})"
    if isinstance(method, FeatureMethod):
        classify = method.classify

        def varied(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
            return classify(episode, override(settings))

        return dataclasses.replace(method, name=text, title=title, classify=varied)
    assert isinstance(method, ImageMethod)
    make = method.make

    def varied_make(apply: Apply, settings: Settings) -> Finetuner:
        return make(apply, override(settings))

    return dataclasses.replace(method, name=text, title=title, make=varied_make)


def _pair(text: str, part: str) -> tuple[str, str]:
    field, equals, value = (piece.strip() for piece in part.partition("="))
    if not (field and equals and value):
        raise UserError(
            f"method {text!r}: write parameters as in rdc(lam=0.3;k=6), in quotes"
        )
    return field, value


def _override(
    settings: Settings, *, text: str, pairs: tuple[tuple[str, str], ...]
) -> Settings:
    """Settings with fields replaced, each read as the type it has by default."""
    parts: dict[str, Any] = {"rdc": settings.rdc, "finetune": settings.finetune}
    for field, value in pairs:
        owner = _OWNERS.get(field)
        if owner is None:
            known = ", ".join(_OWNERS)
            raise UserError(f"method {text!r}: no field {field!r}; known are {known}")
        try:
            typed = _read(value, getattr(_DEFAULTS[owner], field))
            parts[owner] = dataclasses.replace(parts[owner], **{field: typed})
        except ValueError as error:
            raise UserError(f"method {text!r}: {field}={value}: {error}") from error
    return dataclasses.replace(settings, **parts)


def _read(value: str, default: Any) -> Any:
    if isinstance(default, bool):
        if value not in ("True", "False"):
            raise ValueError("must be True or False")
        return value == "True"
    if isinstance(default, tuple):
        words = value.split("+")
        return tuple(int(word) if word.isdigit() else word for word in words)
    return type(default)(value)
