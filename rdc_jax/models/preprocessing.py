"""What a network wants done to its images before it sees them."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Array, Float

from rdc_jax.core import imagenet
from rdc_jax.core.imagenet import Statistics
from rdc_jax.runtime.errors import UserError

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """From a picture to a network's input; the defaults are the few-shot field's.

    A picture is resized, its centre is cut out, and its colours are normalised. Every
    network is given images that are normalised by ImageNet's statistics: one that was
    trained with others converts them itself, see ``renormalised``.

    Example:
      >>> Preprocessing(size=224, edge=256).edge_at(112)
      128
      >>> print(Preprocessing(size=224))
      squeezed to 257 px (bilinear), centre of 224 px

    Attributes:
      size: Edge of the network's images in pixels; None where nothing says.
      edge: Edge that pictures are resized to for this size; None: 1.15 times the size.
      keep_aspect: Resize the shorter side to the edge, and take the central square;
        else squeeze the picture into a square.
      interpolation: Pillow's filter.
      mean: Of each colour, from 0 to 1.
      std: Standard deviation of each colour.
    """

    size: int | None = None
    edge: int | None = None
    keep_aspect: bool = False
    interpolation: Interpolation = "bilinear"
    mean: Statistics = imagenet.MEAN
    std: Statistics = imagenet.STD

    def edge_at(self, size: int) -> int:
        """Edge of the square of which the centre of ``size`` pixels is cut out."""
        if self.edge is None or self.size is None:
            return int(1.15 * size)
        return max(size, self.edge * size // self.size)

    def at(self, size: int) -> "Preprocessing":
        """The same for images of a size."""
        return dataclasses.replace(self, size=size, edge=self.edge_at(size))

    def square_at(self, size: int) -> tuple[int, bool, str]:
        """The fields of ``rdc_jax.data.squares.Square`` for images of a size."""
        return self.edge_at(size), self.keep_aspect, self.interpolation

    def renormalised(self, images: Float[Array, "b h w 3"]) -> Float[Array, "b h w 3"]:
        """From ImageNet's statistics to the network's own."""
        if (self.mean, self.std) == (imagenet.MEAN, imagenet.STD):
            return images
        mean, std = np.asarray(self.mean), np.asarray(self.std)
        scale = np.asarray(imagenet.STD) / std
        shift = (np.asarray(imagenet.MEAN) - mean) / std
        return images * scale.astype(np.float32) + shift.astype(np.float32)

    def replaced(self, fields: Mapping[str, str], size: int) -> "Preprocessing":
        """Read other values, as ``config.preprocessing`` has them; empty ones stay.

        Example:
          >>> print(Preprocessing().replaced({"resize": "shortest:96"}, size=84))
          shorter side to 96 px (bilinear), centre of 84 px

        Args:
          fields: ``resize``, as ``squeeze:256`` or ``shortest:256``; ``interpolation``;
            ``mean`` and ``std``, three numbers with commas.
          size: Edge of the network's images, to which the edge of ``resize`` belongs.

        Raises:
          UserError: A value is not possible; the message names the field.
        """
        changes: dict[str, Any] = {}
        for name, text in fields.items():
            reader, form = _READERS[name]
            try:
                changes |= reader(text) if text else {}
            except (KeyError, ValueError):
                raise UserError(
                    f"config.preprocessing.{name} is {text!r}: give {form}"
                ) from None
        if "edge" in changes:
            changes["size"] = size
            if changes["edge"] < size:
                raise UserError(
                    f"config.preprocessing.resize is {fields['resize']!r}: the edge is "
                    f"below the image size, {size}"
                )
        return dataclasses.replace(self, **changes)

    @property
    def colours(self) -> list[Statistics]:
        """Mean and deviation; empty where they are ImageNet's."""
        return [value for name, value in self.noted.items() if name in ("mean", "std")]

    @property
    def noted(self) -> dict[str, Any]:
        """What differs from the defaults, for JSON and fingerprints."""
        fields = dataclasses.asdict(self)
        default = dataclasses.asdict(FIELD)
        return {name: fields[name] for name in fields if fields[name] != default[name]}

    @staticmethod
    def of_noted(noted: Mapping[str, Any]) -> "Preprocessing":
        """The inverse of ``noted``, also after a way through JSON."""
        colours = {name: tuple(noted[name]) for name in {"mean", "std"} & noted.keys()}
        return dataclasses.replace(FIELD, **{**noted, **colours})

    def __str__(self) -> str:
        size = self.size or 224
        how = "shorter side" if self.keep_aspect else "squeezed"
        parts = [f"{how} to {self.edge_at(size)} px ({self.interpolation})"]
        parts += [f"centre of {size} px"] if self.size else []
        parts += [
            f"{name} {' '.join(f'{value:.4g}' for value in self.noted[name])}"
            for name in ("mean", "std")
            if name in self.noted
        ]
        return ", ".join(parts)


FIELD = Preprocessing()
"""What the few-shot field does."""


def _resize(text: str) -> dict[str, Any]:
    how, _, edge = text.partition(":")
    keep_aspect = {"squeeze": False, "shortest": True}[how]
    return {"keep_aspect": keep_aspect, "edge": int(edge)}


def _interpolation(text: str) -> dict[str, Any]:
    if text not in get_args(Interpolation):
        raise ValueError
    return {"interpolation": text}


def _mean(text: str) -> dict[str, Any]:
    red, green, blue = map(float, text.split(","))
    return {"mean": (red, green, blue)}


def _std(text: str) -> dict[str, Any]:
    red, green, blue = map(float, text.split(","))
    if min(red, green, blue) <= 0:
        raise ValueError
    return {"std": (red, green, blue)}


_READERS: dict[str, tuple[Callable[[str], dict[str, Any]], str]] = {
    "resize": (_resize, "squeeze:256 or shortest:256, for any number of pixels"),
    "interpolation": (_interpolation, f"one of {', '.join(get_args(Interpolation))}"),
    "mean": (_mean, "three numbers from 0 to 1 with commas"),
    "std": (_std, "three numbers above 0 with commas"),
}
