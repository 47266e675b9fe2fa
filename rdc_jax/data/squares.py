"""Pictures of any shape as squares of one size."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image


class Square(NamedTuple):
    """How a picture becomes a square.

    Attributes:
      edge: Edge of the square in pixels.
      keep_aspect: Resize the shorter side to the edge, and take the central square;
        else squeeze the picture, as the few-shot field does.
      interpolation: Pillow's filter, antialiased where it shrinks.
    """

    edge: int
    keep_aspect: bool = False
    interpolation: str = "bilinear"

    def of(self, picture: Image.Image) -> UInt8[np.ndarray, "edge edge 3"]:
        """Resize a picture, not an array: copies of those hold Python's lock."""
        edge, width, height = self.edge, self.edge, self.edge
        if self.keep_aspect:
            width, height = (n * edge // min(picture.size) for n in picture.size)
        resampling = Image.Resampling[self.interpolation.upper()]
        resized = picture.resize((width, height), resampling)
        if width != height:
            left, top = round((width - edge) / 2), round((height - edge) / 2)
            resized = resized.crop((left, top, left + edge, top + edge))
        return np.asarray(resized)

    @classmethod
    def given(cls, size: "int | Square") -> "Square":
        """Take a number of pixels for the field's square of that edge."""
        return cls(size) if isinstance(size, int) else size

    @property
    def fields(self) -> dict[str, Any]:
        """What makes it another one, for a cache's fingerprint."""
        how = "shorter side, " if self.keep_aspect else ""
        return {"size": self.edge, "resize": f"{how}{self.interpolation}"}

    @property
    def name(self) -> str:
        """For the name of a file."""
        parts = ["aspect"] * self.keep_aspect
        parts += [self.interpolation] * (self.interpolation != "bilinear")
        return "-".join([f"{self.edge}px", *parts])
