"""Networks that are no JAX programs: any function of NumPy arrays."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32

from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

Function = Callable[[Float32[np.ndarray, "b h w 3"]], Any]


class HostNetwork:
    """A function from images to features, in the place of a network.

    It is called with NumPy arrays, a batch at a time, and treats each image by itself.
    It cannot be trained, nor fitted to a task.

    Args:
      function: From images ``[b, h, w, 3]`` in float32 to ``[b, d]``, as anything that
        NumPy reads.
      size: Edge of the images.
      fingerprint: Something that changes when the weights do, so that kept features are
        made anew; None: what the function makes of two fixed images.
    """

    def __init__(
        self, function: Function, size: int, fingerprint: str | None = None
    ) -> None:
        self._function, self._size = function, size
        self._fingerprint = fingerprint
        self._widths: dict[tuple[int, ...], int] = {}

    def __call__(
        self, variables: Any, images: Float[Array, "b h w 3"], train: bool
    ) -> tuple[Float[Array, "b d"], dict[str, Any]]:
        """Compute features; there are no variables and no batch statistics."""
        del variables
        if train:
            raise UserError(
                f"{name_of(self._function)} is a function of NumPy arrays, and cannot "
                "be trained: give a network of Flax"
            )
        if not isinstance(images, jax.core.Tracer):
            return jnp.asarray(self._compute(images)), {}
        features = jax.ShapeDtypeStruct((len(images), self._width(images)), np.float32)
        return jax.pure_callback(self._compute, features, images), {}

    @property
    def fingerprint(self) -> str:
        """Tells one function from another, by its weights.

        Of a probe three digits count: rounding, which may differ from one run to the
        next, does not reach them.
        """
        if self._fingerprint is None:
            rng, shape = np.random.default_rng(0), (2, self._size, self._size, 3)
            feat_bd = self._compute(rng.standard_normal(shape, np.float32))
            rows = (*feat_bd, feat_bd[0] - feat_bd[1])
            moments = [f"{np.abs(row).mean():.3g} {row.std():.3g}" for row in rows]
            self._fingerprint = checksums.of_json(moments)
        return self._fingerprint

    def _compute(self, images: Any) -> Float32[np.ndarray, "b d"]:
        # A copy that may be written to, as torch wants it.
        feat_bd = np.asarray(self._function(np.array(images)), np.float32)
        if feat_bd.ndim != 2 or len(feat_bd) != len(images):
            raise UserError(
                f"{name_of(self._function)} gives {feat_bd.shape} for {len(images)} "
                "images: it must give one row of features an image"
            )
        return feat_bd

    def _width(self, images: Array) -> int:
        shape = images.shape[1:]
        if shape not in self._widths:
            one = self._compute(np.zeros((1, *shape), np.float32))
            self._widths[shape] = one.shape[1]
        return self._widths[shape]


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called in messages."""
    return getattr(function, "__name__", type(function).__name__)
