"""What a model computes, without its weights."""

import dataclasses
from collections.abc import Callable
from typing import Any

from flax import linen as nn
from jaxtyping import Array

from rdc_jax.models.backbones import create
from rdc_jax.models.preprocessing import FIELD, Preprocessing

Variables = dict[str, Any]
Apply = Callable[[Variables, Array, bool], tuple[Array, Any]]


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a model computes, without its weights.

    Attributes:
      arch: Name of the backbone, see ``rdc_jax.models.BACKBONES``.
      arch_options: Its own arguments, by name.
      dtype: Of the computation, ``float32`` or ``bfloat16``.
      conv: See ``rdc_jax.models.create``.
      head: Name in ``rdc_jax.models.HEADS``, if there is a head.
      head_options: Its arguments, by name.
      decoder: Name in ``rdc_jax.models.DECODERS``, if there is a decoder.
      decoder_options: Its arguments, by name.
      network: Used instead of ``arch``, see ``wrap``.
      preprocessing: What is done to images before them.
      start: How many stages of the network are left out, see ``Model.after``.
    """

    arch: str
    arch_options: tuple[tuple[str, Any], ...] = ()
    dtype: str = "float32"
    conv: str = "auto"
    head: str | None = None
    head_options: tuple[tuple[str, Any], ...] = ()
    decoder: str | None = None
    decoder_options: tuple[tuple[str, Any], ...] = ()
    network: nn.Module | Apply | None = None
    preprocessing: Preprocessing = FIELD
    start: int = 0

    @property
    def backbone(self) -> nn.Module | Apply:
        """The network that gives features, a linen module as a rule."""
        made = self.network or create(
            self.arch, dtype=self.dtype, conv=self.conv, **dict(self.arch_options)
        )
        if self.start and isinstance(made, nn.Module):
            return made.clone(start=self.start)
        return made
