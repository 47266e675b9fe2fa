"""Relation networks, by a head that was trained for it."""

import dataclasses

from rdc_jax.methods.base import register
from rdc_jax.methods.heads import HeadMethod, replaced
from rdc_jax.models.model import Model


@register("relation")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RelationMethod(HeadMethod):
    """A learned score of each query's map beside the mean map of each class.

    Attributes:
      moments: Whose moments normalise: ``batch``, of all pairs of the task, or
        ``running``; empty: as in training.
    """

    title = "RelationNet"
    inputs = "maps"
    head = "relation"

    moments: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.moments not in ("", "batch", "running"):
            raise ValueError("choose from batch, running")

    @property
    def transductive(self) -> bool:  # type: ignore[override]
        """Unless moments are those of training."""
        return self.moments != "running"

    def with_options(self, model: Model) -> Model:
        """The head with these moments."""
        return replaced(model, moments=self.moments)
