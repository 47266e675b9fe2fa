"""Transductive propagation, by a head that was trained for it."""

import dataclasses
from typing import get_args

from rdc_jax.methods.base import register
from rdc_jax.methods.heads import HeadMethod, replaced
from rdc_jax.models.heads.norm import Moments
from rdc_jax.models.model import Model


@register("tpn")
@dataclasses.dataclass(frozen=True, kw_only=True)
class TPNMethod(HeadMethod):
    """Labels propagated over a graph of all images, whose length scales are learned.

    Attributes:
      moments: Whose moments normalise in the head: ``running``, the published choice
        of models, or ``batch`` or ``support`` of the task.
    """

    title = "TPN"
    transductive = True
    inputs = "maps"
    head = "tpn"

    moments: str = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.moments not in get_args(Moments):
            raise ValueError(f"choose from {', '.join(get_args(Moments))}")

    def with_options(self, model: Model) -> Model:
        """The head with these moments."""
        return replaced(model, moments=self.moments)
