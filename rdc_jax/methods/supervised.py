"""Fine-tuning by a linear head on the labelled images, the usual baseline."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

ClassifyFeatures = Callable[[Array, Array, Array], Array]
"""``(support [s, d], labels [s], query [q, d]) -> class distances [q, c]``."""


@dataclasses.dataclass(frozen=True)
class SupervisedObjective:
    """Cross-entropy of a linear head on the supports.

    Attributes:
      num_classes: Classes of the task.
      classifier: What answers after training; None: the head itself.
    """

    num_classes: int
    classifier: ClassifyFeatures | None = None

    queries = False

    def init(self, feat_nd: Array, labels_s: Array) -> tuple[Any, None]:
        """A head of zeros: all classes are equally likely at first."""
        del labels_s
        kernel_dc = jnp.zeros((feat_nd.shape[1], self.num_classes))
        return {"kernel": kernel_dc, "bias": jnp.zeros(self.num_classes)}, None

    def loss(
        self, own: Any, kept: None, feat_nd: Array, labels_s: Array
    ) -> Float[Array, ""]:
        """Mean cross-entropy."""
        del kept
        logits_sc = _logits(own, feat_nd)
        entropies_s = optax.softmax_cross_entropy_with_integer_labels(
            logits_sc, labels_s
        )
        return entropies_s.mean()

    def classify(
        self, own: Any, feat_nd: Array, labels_s: Array
    ) -> Float[Array, "q c"]:
        """Negative logits, or what the classifier makes of the features."""
        support_sd, query_qd = jnp.split(feat_nd, [len(labels_s)])
        if self.classifier is None:
            return -_logits(own, query_qd)
        return self.classifier(support_sd, labels_s, query_qd)


def _logits(own: Any, feat_nd: Array) -> Float[Array, "n c"]:
    return feat_nd @ own["kernel"] + own["bias"]
