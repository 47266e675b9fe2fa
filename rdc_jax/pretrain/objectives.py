"""What a step minimises: a network with its loss.

Both objectives keep the backbone's variables under ``backbone``, so a checkpoint of
either gives the backbone in the same place.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdc_jax.core.prototypes import npc
from rdc_jax.models.heads import Classifier
from rdc_jax.pretrain.state import Variables


class Outcome(NamedTuple):
    """What a loss gives beside its value.

    Attributes:
      accuracy: Share of right answers in the batch.
      batch_stats: The network's new batch-norm statistics.
    """

    accuracy: Float[Array, ""]
    batch_stats: Any


@runtime_checkable
class Objective(Protocol):
    """A network and its loss."""

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the network's variables; ``size`` is that of the images."""

    def loss(
        self,
        params: Any,
        batch_stats: Any,
        images: Float[Array, "b h w 3"],
        labels: Int[Array, " b"],
    ) -> tuple[Float[Array, ""], Outcome]:
        """Compute the loss of a batch in training mode."""


class CrossEntropy(NamedTuple):
    """Classification of the base classes.

    Attributes:
      backbone: Of the network, a linen module.
      num_classes: Number of base classes.
      label_smoothing: Share of the target spread over all classes.
    """

    backbone: Any
    num_classes: int
    label_smoothing: float = 0.0

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the network's variables."""
        images = jnp.zeros((1, size, size, 3))
        return {**Classifier(self.backbone, self.num_classes).init(key, images)}

    def loss(
        self,
        params: Any,
        batch_stats: Any,
        images: Float[Array, "b h w 3"],
        labels: Int[Array, " b"],
    ) -> tuple[Float[Array, ""], Outcome]:
        """Compute the cross-entropy of a batch."""
        model = Classifier(self.backbone, self.num_classes)
        (logits_bc, _), updates = model.apply(
            {"params": params, "batch_stats": batch_stats},
            images,
            train=True,
            mutable=["batch_stats"],
        )
        loss = _cross_entropy(logits_bc, labels, self.label_smoothing)
        accuracy = jnp.mean(jnp.argmax(logits_bc, -1) == labels)
        return loss, Outcome(accuracy, updates["batch_stats"])


class ProtoNet(NamedTuple):
    """Prototypical networks: one few-shot task a step, its supports first.

    Attributes:
      backbone: Of the network, a linen module.
      way: Classes of a task.
      shot: Supports a class.
    """

    backbone: Any
    way: int
    shot: int

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the network's variables."""
        variables = self.backbone.init(key, jnp.zeros((1, size, size, 3)))
        return {name: {"backbone": tree} for name, tree in variables.items()}

    def loss(
        self,
        params: Any,
        batch_stats: Any,
        images: Float[Array, "b h w 3"],
        labels: Int[Array, " b"],
    ) -> tuple[Float[Array, ""], Outcome]:
        """Compute the cross-entropy of the queries of a task.

        Logits are minus the squared distances of raw features to the prototypes
        (Snell et al. 2017); labels are the task's own, 0 to way - 1.
        """
        (features_bd, _), updates = self.backbone.apply(
            {"params": params["backbone"], "batch_stats": batch_stats["backbone"]},
            images,
            train=True,
            mutable=["batch_stats"],
        )
        s = self.way * self.shot
        distances_qc = npc(
            features_bd[:s],
            labels[:s],
            features_bd[s:],
            num_classes=self.way,
            normalize=False,
        )
        logits_qc, labels_q = -jnp.square(distances_qc), labels[s:]
        loss = _cross_entropy(logits_qc, labels_q, 0.0)
        accuracy = jnp.mean(jnp.argmax(logits_qc, -1) == labels_q)
        return loss, Outcome(accuracy, {"backbone": updates["batch_stats"]})


def features(
    backbone: Any, variables: Variables, images: Float[Array, "b h w 3"]
) -> Float[Array, "b d"]:
    """Compute features by the running statistics, from variables of an objective."""
    inner = {name: tree["backbone"] for name, tree in variables.items()}
    return backbone.apply(inner, images, train=False)[0]


def _cross_entropy(
    logits_bc: Float[Array, "b c"], labels_b: Int[Array, " b"], smoothing: float
) -> Float[Array, ""]:
    targets_bc = jax.nn.one_hot(labels_b, logits_bc.shape[-1])
    targets_bc = optax.smooth_labels(targets_bc, smoothing)
    return optax.softmax_cross_entropy(logits_bc, targets_bc).mean()
