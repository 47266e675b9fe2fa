"""Label propagation over the task's nearest-neighbour graph (Zhou et al. 2004)."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core.propagation import cosine_graph, propagate
from rdc_jax.core.rows import l2_normalize
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, surprise


@register("label_propagation")
@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelPropagation(PreparedMethod):
    """Labels spread from the supports along edges ``relu(cosine)^power``.

    What a class spreads is divided by all that it spread, so that a support in the
    middle of the task does not take it all (class mass normalisation, Zhu et al. 2003).

    Attributes:
      k: Neighbours of a row.
      alpha: Share that a row takes from its neighbours, in [0, 1).
      power: Of the cosine; larger ones favour the nearest.
    """

    title = "Label propagation"
    transductive = True

    k: int = 10
    alpha: float = 0.8
    power: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha >= 1:
            raise ValueError(f"alpha must be below 1, got {self.alpha}")

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Logarithms of what a query received from each class, negated."""
        graph_nn = cosine_graph(
            l2_normalize(task.rows), task.valid, k=self.k, power=self.power
        )
        spread_nc = propagate(graph_nn, task.labels, self.alpha)
        mass_c = spread_nc.sum(axis=0)
        return surprise(spread_nc[task.support.shape[0] :] / mass_c[None, :])
