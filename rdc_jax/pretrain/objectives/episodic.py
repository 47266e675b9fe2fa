"""Training on few-shot tasks by a head that answers a whole task."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdc_jax.models.heads.episode import (
    Episode,
    EpisodeHead,
    empty_episode,
    make_episode,
)
from rdc_jax.models.model import Model, Spec, Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.options import Options


@dataclasses.dataclass(frozen=True)
class Episodic:
    """Cross-entropy of the queries of a task, by the logits of a head.

    Attributes:
      spec: A backbone with a head of ``rdc_jax.models.heads`` that takes a task.
      way: Classes of a task.
      shot: Supports of each class.
      method: Name of the method that answers by this head.
    """

    spec: Spec
    way: int
    shot: int
    method: str
    batches: ClassVar[base.Batches] = "tasks"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    @property
    def head(self) -> EpisodeHead:
        """The head."""
        head: Any = Model(self.spec, {}).head
        return head

    @property
    def takes_embedded(self) -> bool:
        """Unless something acts within the network."""
        return self.spec.network is None

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the weights of backbone and head."""
        keys, images = jax.random.split(key), jnp.zeros((1, size, size, 3))
        network: Any = Model(self.spec, {}).backbone
        inner = network.init(keys[0], images)
        variables = {kind: {"backbone": tree} for kind, tree in inner.items()}
        model, kind = Model(self.spec, variables), self.head.inputs
        (row,), _ = model.inputs(kind, images)
        episode = empty_episode(row.shape, way=self.way, shot=self.shot, query=1)
        head: Any = self.head
        for kind, tree in head.init(keys[1], episode).items():
            variables[kind] = {**variables.get(kind, {}), "head": tree}
        return variables

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Compute the loss of the queries' logits."""
        model, episode, batch_stats = self.take(variables, batch, key, train=train)
        logits_qc, updates = model.apply_head(
            episode, train=train, mutable=["batch_stats"] if train else []
        )
        if "batch_stats" in updates:
            batch_stats = {**batch_stats, "head": updates["batch_stats"]}
        labels_q = batch.labels[len(episode.support) :]
        return self.judge(logits_qc, labels_q, batch_stats)

    def take(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Model, Episode, dict[str, Any]]:
        """Give the model, the task as its head takes it, and ``batch_stats``."""
        model, labels_b = Model(self.spec, variables), batch.labels
        if isinstance(batch, base.Embedded):
            rows, batch_stats = batch.images, variables.get("batch_stats", {})
        else:
            rows, batch_stats = model.inputs(self.head.inputs, batch.images, train, key)
        s = self.way * self.shot
        episode = make_episode(
            *(rows[:s], labels_b[:s], rows[s:], self.way), query_labels=labels_b[s:]
        )
        return model, episode, batch_stats

    def judge(
        self,
        logits_qc: Float[Array, "q c"],
        labels_q: Int[Array, " q"],
        batch_stats: dict[str, Any],
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Give the loss and the accuracy of logits."""
        return base.classify(logits_qc, labels_q, batch_stats)


def episodic(
    options: Options,
    head: str,
    method: str = "",
    *,
    kind: type[Episodic] = Episodic,
    fields: Mapping[str, Any] = MappingProxyType({}),
    **head_options: Any,
) -> Episodic:
    """Make an objective that trains a head on the tasks of a run.

    Args:
      options: The typed config of the run.
      head: Name in ``rdc_jax.models.HEADS``.
      method: Name of the method that answers by it; empty: that of the head.
      kind: The class of the objective.
      fields: Of that class, beside those of ``Episodic``.
      **head_options: Of the head.
    """
    task = options.episode
    spec = base.spec_of(
        options, head=head, head_options=tuple(sorted(head_options.items()))
    )
    objective = kind(spec, task.most_ways, task.most_shots, method or head, **fields)
    _ = objective.head  # A wrong option of it is told now.
    return objective
