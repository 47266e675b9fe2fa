"""Prototypical networks (Snell et al. 2017): training on few-shot tasks."""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdc_jax.core.prototypes import npc
from rdc_jax.models.model import Model, Spec, Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.options import Options


@dataclasses.dataclass(frozen=True)
class ProtoNet:
    """Cross-entropy of the queries of a task, by their distances to class means.

    Attributes:
      spec: A backbone.
      way: Classes of a task.
      shot: Supports of each class.
    """

    spec: Spec
    way: int
    shot: int
    batches: ClassVar[base.Batches] = "tasks"
    method: ClassVar[str] = "protonet"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the weights of the backbone."""
        backbone: Any = Model(self.spec, {}).backbone
        variables = backbone.init(key, jnp.zeros((1, size, size, 3)))
        return {name: {"backbone": tree} for name, tree in variables.items()}

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Compute the mean cross-entropy of the queries' classes."""
        model = Model(self.spec, variables)
        features_bd, _, batch_stats = model.apply(batch.images, train, key)
        s, labels_b = self.way * self.shot, batch.labels
        distances_qc = npc(
            features_bd[:s],
            labels_b[:s],
            features_bd[s:],
            num_classes=self.way,
            normalize=False,
        )
        # Squared distances make it a linear classifier (section 2.4 of that paper).
        logits_qc = -jnp.square(distances_qc)
        return base.classify(logits_qc, labels_b[s:], batch_stats)


@base.register("protonet")
def protonet(options: Options, num_classes: int) -> ProtoNet:
    """Prototypical networks, a task of config.episode a step."""
    del num_classes  # A task has classes of its own.
    task = options.episode
    return ProtoNet(base.spec_of(options), task.most_ways, task.most_shots)
