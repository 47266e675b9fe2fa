"""Classification of the base classes: the paper's pre-training."""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdc_jax.models.heads import Classifier
from rdc_jax.models.model import Model, Spec, Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.options import Options


@dataclasses.dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of a linear head on the features.

    Attributes:
      spec: A backbone with a ``linear`` head.
      label_smoothing: Share of the target that is spread over all classes.
    """

    spec: Spec
    label_smoothing: float = 0.0
    batches: ClassVar[base.Batches] = "images"
    method: ClassVar[str] = "npc_l2"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the weights of backbone and head."""
        backbone: Any = Model(self.spec, {}).backbone
        network = Classifier(backbone, **dict(self.spec.head_options))
        return {**network.init(key, jnp.zeros((1, size, size, 3)))}

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Compute the mean cross-entropy of the images' classes."""
        model = Model(self.spec, variables)
        features_bd, _, batch_stats = model.apply(batch.images, train, key)
        logits_bc = model.apply_head(features_bd)
        return base.classify(
            logits_bc, batch.labels, batch_stats, smoothing=self.label_smoothing
        )


@base.register("cross_entropy")
def cross_entropy(options: Options, num_classes: int) -> CrossEntropy:
    """Classification of the base classes, config.batch_size images a step."""
    return CrossEntropy(linear_spec(options, num_classes), options.label_smoothing)


def linear_spec(options: Options, num_classes: int) -> Spec:
    """Describe a backbone with a linear head."""
    head = {"head": "linear", "head_options": (("num_classes", num_classes),)}
    return base.spec_of(options, **head)
