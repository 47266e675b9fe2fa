"""Explanation-guided training of a graph network, by relevance (LRP).

Sun et al., "Explanation-Guided Training for Cross-Domain Few-Shot Classification", ICPR
2020, as its published code has it.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdc_jax.models.heads import relevance
from rdc_jax.models.heads.episode import Episode
from rdc_jax.models.heads.gnn import GNN, Graphs
from rdc_jax.models.model import Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.objectives.episodic import Episodic
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
class ExplanationGuided(base.Wrapper):
    """A graph network's loss, and its loss on features weighed by their relevance.

    The relevance of each projected feature of a node, over the largest one of the node,
    weighs it by 0 to 2. In eval mode the loss is that of the graph network alone.

    Attributes:
      inner: An episodic objective with a ``gnn`` head.
      weight: Of the second loss.
      epsilon: See ``relevance.of_nodes``.
      whole: See ``relevance.of_nodes``.
    """

    inner: Episodic
    weight: float = 1.0
    epsilon: float = 0.01
    whole: bool = False

    own_metrics: ClassVar[tuple[str, ...]] = ("explained_loss",)

    @property
    def takes_embedded(self) -> bool:
        """As the graph network's own loss."""
        return self.inner.takes_embedded

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Compute the sum of the losses."""
        if not train:
            loss, aux = self.inner.loss(variables, batch, key, train=False)
            return loss, aux._replace(metrics=aux.metrics | {"explained_loss": loss})
        model, episode, batch_stats = self.inner.take(variables, batch, key)
        (graphs, logits_gnc, taken), updates = model.apply_head(
            episode, method=_spread, mutable=["batch_stats"]
        )
        stats = {**batch_stats, "head": updates["batch_stats"]}
        weighed = self._weigh(graphs, logits_gnc, taken, model.variables)
        # Running moments are those of the plain features, as at test.
        again_gnc, _ = model.apply_head(weighed, method="spread", train=True)
        labels_q = batch.labels[len(episode.support) :]
        loss, aux = base.classify(graphs.of_queries(logits_gnc), labels_q, stats)
        more, _ = base.classify(graphs.of_queries(again_gnc), labels_q, stats)
        metrics = aux.metrics | {"explained_loss": more}
        return loss + self.weight * more, aux._replace(metrics=metrics)

    def _weigh(
        self, graphs: Graphs, logits_gnc: Array, taken: Any, variables: Variables
    ) -> Graphs:
        """Give the graphs with their projected features weighed; a constant weight."""
        head = variables["params"]["head"]
        # Constants, so that no derivative of the relevance is prepared.
        head, taken, logits_gnc = jax.lax.stop_gradient((head, taken, logits_gnc))
        relevance_gnd = relevance.of_nodes(
            taken,
            [head[f"convs_{i}"]["kernel"] for i in range(len(taken))],
            relevance.of_logits(logits_gnc),
            epsilon=self.epsilon,
            whole=self.whole,
        )
        relevance_gnf = relevance_gnd[..., : graphs.node.shape[-1]]
        largest_gn1 = jnp.abs(relevance_gnf).max(axis=-1, keepdims=True)
        share_gnf = relevance_gnf / jnp.where(largest_gn1 > 0, largest_gn1, 1)
        return graphs._replace(node=graphs.node * (1 + share_gnf))


def _spread(head: GNN, episode: Episode) -> tuple[Graphs, Array, Any]:
    """The graphs of a task, their logits, and what each block took."""
    graphs = head.graphs(episode, train=True)
    return graphs, *head.spread(graphs, train=True)


@base.register("lrp")
def lrp(
    options: Options,
    num_classes: int,
    *,
    inner: str = "gnn",
    weight: float = 0.0,
    epsilon: float = 0.01,
    whole: bool = False,
) -> ExplanationGuided:
    """A graph network's loss on relevant features beside its own (Sun et al. 2020)."""
    made = base.get_objective(inner)(options, num_classes)
    if not isinstance(made, Episodic) or made.spec.head != "gnn":
        raise UserError(f"lrp explains a gnn, not {inner}: set --config.method=gnn+lrp")
    # As the authors have it; they leave other shots open.
    weight = weight or (0.5 if options.episode.shot == 1 else 1.0)
    return ExplanationGuided(made, weight, epsilon, whole)
