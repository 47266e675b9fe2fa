"""The graph network, and what query order and query statistics are worth to it."""

import dataclasses
from typing import ClassVar, get_args

from jaxtyping import Array, Float, Int

from rdc_jax.methods.base import Task, register
from rdc_jax.methods.heads import HeadMethod, replaced
from rdc_jax.models.heads.norm import Moments
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError


@register("gnn")
@dataclasses.dataclass(frozen=True, kw_only=True)
class GNNMethod(HeadMethod):
    """Labels spread over graphs of the supports and some queries.

    Attributes:
      layout: Which queries share a graph, ``one`` or ``shuffled``; empty: as in
        training.
      moments: Whose moments normalise: ``batch``, ``support`` or ``running``; empty:
        as in training.
    """

    title = "GNN"
    head = "gnn"

    layout: str = ""
    moments: str = ""

    layouts: ClassVar[tuple[str, ...]] = ("one", "shuffled")

    def __post_init__(self) -> None:
        super().__post_init__()
        choices = {"layout": self.layouts, "moments": get_args(Moments)}
        for name, known in choices.items():
            if getattr(self, name) not in ("", *known):
                raise ValueError(f"choose {name} from {', '.join(known)}")

    @property
    def transductive(self) -> bool:  # type: ignore[override]
        """Unless each query has its own graph, and moments without other queries."""
        return self.layout != "one" or self.moments not in ("support", "running")

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse a head that wants the labels of queries."""
        super().check(task, model)
        if model is None:
            return
        layout = dict(self.with_options(model).spec.head_options).get("layout", "one")
        if layout not in self.layouts:
            raise UserError(
                "the head of this checkpoint lays queries out by their labels: ask for "
                "gnn_balanced, which is told the labels, or gnn(layout=shuffled)"
            )

    def with_options(self, model: Model) -> Model:
        """The head with this layout and these moments."""
        return replaced(model, layout=self.layout, moments=self.moments)


@register("gnn_balanced")
@dataclasses.dataclass(frozen=True, kw_only=True)
class GNNBalanced(GNNMethod):
    """One query of each class in a graph, as published: told the queries' labels."""

    title = "GNN, laid out by the query labels (assumes balance)"
    assumes_balance = True
    layouts = ("balanced",)

    layout: str = "balanced"

    def told(
        self, task: Task, model: Model | None, labels_q: Int[Array, " q"]
    ) -> Float[Array, "q c"]:
        """Answer with the labels: to measure what their order is worth."""
        return self.answer(task, model, labels_q)
