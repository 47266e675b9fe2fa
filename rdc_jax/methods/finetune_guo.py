"""Fine-tuning as the benchmark of Guo et al. (ECCV 2020) has it in its code."""

import dataclasses
from typing import Any

import jax
import optax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.methods.adapt import on_features
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.optimiser import dampened_sgd
from rdc_jax.methods.tuned import (
    Loss,
    State,
    Tuned,
    cross_entropy,
    epoch,
    forward,
    linear_head,
    logits,
)
from rdc_jax.models.model import Model


@register("finetune_guo")
@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneGuo(Tuned):
    """A linear head and all layers, on the supports in small batches.

    The paper speaks of one optimiser; its code has plain SGD for the network, and SGD
    with momentum, dampening and decay for the head.

    Attributes:
      epochs: Passes over the supports.
      batch: Images a batch; the last one of an epoch takes what is left.
      learning_rate: Of network and head.
      momentum: Of the head.
      dampening: Of the head.
      weight_decay: Of the head.
    """

    title = "Fine-tuning (Guo)"
    transductive = False

    epochs: int = 100
    batch: int = 4
    learning_rate: float = 0.01
    momentum: float = 0.9
    dampening: float = 0.9
    weight_decay: float = 1e-3

    @property
    def steps(self) -> int:
        """A step is an epoch."""
        return self.epochs

    def optimiser(self) -> optax.GradientTransformation:
        """One for the network, another for the head."""
        kinds = {"network": "network", "head": "head"}
        network = optax.sgd(self.learning_rate)
        return optax.partition({"network": network, "head": self.dampened()}, kinds)

    def dampened(self) -> optax.GradientTransformation:
        """SGD with momentum, dampening and decay."""
        return dampened_sgd(
            self.learning_rate,
            momentum=self.momentum,
            dampening=self.dampening,
            weight_decay=self.weight_decay,
        )

    def start(self, key: Key[Array, ""], width: int, task: Task) -> Any:
        """A linear head with random weights."""
        return linear_head(key, width, task.num_classes)

    def samples(
        self, key: Key[Array, ""], state: State, task: Task
    ) -> tuple[Float[Array, "m size size 3"], Int[Array, " m"]]:
        """Images of an epoch with their classes: the supports as they are."""
        del key
        return self.transformed(state, task.support), task.support_labels

    def batch_loss(
        self, images: Float[Array, "b h w 3"], labels_b: Int[Array, " b"]
    ) -> Loss:
        """Mean cross-entropy of the head."""

        def loss(model: Model, head: Any) -> tuple[Float[Array, ""], Model]:
            feat_bd, model = forward(model, images)
            return cross_entropy(logits(head, feat_bd), labels_b), model

        return loss

    def step(self, state: State, task: Task, key: Key[Array, ""]) -> State:
        """Make an epoch."""
        order_key, sample_key = jax.random.split(key)
        images, labels_m = self.samples(sample_key, state, task)

        def on_rows(state: State, rows: Int[Array, " b"]) -> State:
            return self.descend(state, self.batch_loss(images[rows], labels_m[rows]))

        return epoch(order_key, state, len(images), self.batch, on_rows)

    def classify(self, state: State, task: Task) -> Float[Array, "q c"]:
        """Negative logits of the head, by the running statistics."""
        feat_nd = self.features(state, task)
        return -logits(state.params["head"], on_features(task, feat_nd).query)
