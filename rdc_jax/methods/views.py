"""What features are taken of an image: of which views of it, and of which layers."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, UInt8

from rdc_jax.core.rows import l2_normalize
from rdc_jax.data.transforms import test_batch, test_views
from rdc_jax.methods.base import FeatureMethod, Method
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

VIEWS = (1, 2, 4)
OUTPUT = "features"  # What a network itself calls its features.


@dataclasses.dataclass(frozen=True)
class Views:
    """How an image becomes one row of features.

    Each layer's maps are averaged over the image, and over the views. Several layers
    stand side by side, each row of a layer l2-normalised and times the layer's weight;
    one layer alone is left as it is.

    Example:
      >>> Views.from_text(4, "block3:0.7,block4").layers
      (('block3', 0.7), ('block4', 1.0))

    Attributes:
      count: 1: the test transform's crop; 2: its mirror image, too; 4: the uncropped
        image, too, both ways.
      layers: Names of the network's intermediates with their weights; ``features`` is
        its output.
    """

    count: int = 1
    layers: tuple[tuple[str, float], ...] = ((OUTPUT, 1.0),)

    def __post_init__(self) -> None:
        if self.count not in VIEWS:
            allowed = ", ".join(map(str, VIEWS))
            raise UserError(f"views must be one of {allowed}, got {self.count}")

    @classmethod
    def from_text(cls, count: int, layers: str) -> "Views":
        """Read ``block3:0.7,block4``: names with weights, 1 where none is given.

        Raises:
          UserError: A weight is no positive number, or there is no such count.
        """
        pairs = []
        for part in layers.split(","):
            name, colon, weight = part.strip().partition(":")
            try:
                value = float(weight) if colon else 1.0
            except ValueError:
                value = 0.0
            if not (name and value > 0):
                raise UserError(
                    f"features.layers={layers}: write names with positive weights, as "
                    "in block3:0.7,block4"
                )
            pairs.append((name, value))
        return cls(count, tuple(pairs))

    def asked_by(self, method: Method) -> "Views":
        """Give what a method asks for, and these where it asks for nothing.

        Raises:
          UserError: It asks for what there is not.
        """
        if not isinstance(method, FeatureMethod):
            return self
        count = method.views or self.count
        if not method.layers:
            return Views(count, self.layers)
        return Views.from_text(count, ",".join(method.layers))

    @property
    def described(self) -> str:
        """In words, for a cache's fingerprint; empty for the crop's features alone."""
        if self == Views():
            return ""
        layers = " + ".join(f"{weight:g} {name}" for name, weight in self.layers)
        return f"mean of {self.count} views of {layers}"

    def embed(
        self, model: Model, images: UInt8[ArrayLike, "b h w 3"], size: int
    ) -> Float[Array, "b d"]:
        """Features of raw images, each by itself; a pure function.

        Args:
          model: The network.
          images: As decoded.
          size: Edge of the test transform's crop in pixels.

        Raises:
          UserError: The network has no such layer.
        """
        edge = model.preprocessing.edge_at(size)
        batches = test_views(jnp.asarray(images), size, self.count, edge)
        of_views = [self._layers(model, batch) for batch in batches]
        parts = [sum(rows) / len(batches) for rows in zip(*of_views, strict=True)]
        if len(parts) == 1:
            return parts[0]
        weights = [weight for _, weight in self.layers]
        scaled = (
            weight * l2_normalize(part)
            for weight, part in zip(weights, parts, strict=True)
        )
        return jnp.concatenate(list(scaled), axis=1)

    def _layers(self, model: Model, images: Array) -> list[Float[Array, "b l"]]:
        """Each layer's mean over the image."""
        features, named, _ = model.apply(images)
        found = {**named, OUTPUT: features}
        if missing := [name for name, _ in self.layers if name not in found]:
            raise UserError(
                f"the network {model.arch} has no layer {missing[0]!r}: choose from "
                f"{', '.join(found)}"
            )
        rows = [found[name].astype(jnp.float32) for name, _ in self.layers]
        return [x.mean(axis=tuple(range(1, x.ndim - 1))) for x in rows]


def compiled(embed: Callable[..., Array], model: Model) -> Callable[..., Array]:
    """Jit what applies a model, unless its network is a function of NumPy arrays."""
    return embed if model.on_host else jax.jit(embed)


def feature_fn(
    views: Views | None, size: int
) -> Callable[[Model, UInt8[Array, "b h w 3"]], Array]:
    """Give what makes the inputs of methods from raw images, each by itself."""

    def maps(model: Model, images: Array) -> Array:
        edge = model.preprocessing.edge_at(size)
        return model.inputs("maps", test_batch(images, size, edge))[0]

    def rows(model: Model, images: Array) -> Array:
        assert views is not None
        return views.embed(model, images, size)

    return rows if views else maps
