"""RDC+-FT: a task's last stage learns the answers of RDC+, and both answer."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rdc_jax.core.rows import l2_normalize
from rdc_jax.methods.adapt import on_features
from rdc_jax.methods.base import FeatureMethod, Task, prepared, register
from rdc_jax.methods.gradient import GradientAdaptation
from rdc_jax.methods.rdc_plus import RDCPlus
from rdc_jax.methods.state import State


class Answers(NamedTuple):
    """What a task learns from.

    Attributes:
      features: Before training.
      member: Labels of the supports, soft answers for the queries.
      weight: How sure each of them is, 0 to 1.
    """

    features: Float[Array, "n d"]
    member: Float[Array, "n c"]
    weight: Float[Array, " n"]


@register("rdc_plus_ft")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCPlusFT(GradientAdaptation):
    """The last stage learns RDC+'s answers; features before and after answer together.

    ``rdc_plus`` answers for the queries once, before training. A cosine classifier
    begins at the means of these soft classes, and learns them together with the
    weights, each image as far as its answer is sure. Then ``rdc_plus`` answers again,
    by the sum of the inner products before and after: what one space got wrong, the
    other may correct. Those after weigh one over the number of shots: the more labels,
    the less is learnt from answers.

    Attributes:
      temperature: What cosines are divided by.
      confidence: Power of an answer's certainty, which weighs it; 0: all alike.
      together: Both spaces answer; else the trained one alone.
    """

    title = "RDC+-FT"
    transductive = True
    preferred: ClassVar[Mapping[str, Any]] = {
        "layers": ("block4",),
        "batch_norm": "running",
        "mirror": True,
        "steps": 8,
        "learning_rate": 1e-4,
    }

    temperature: float = 0.1
    confidence: float = 1.0
    together: bool = True

    def start(
        self, key: Key[Array, ""], feat_nd: Float[Array, "n d"], task: Task
    ) -> tuple[Any, Answers]:
        """A classifier at the means of the soft classes, and what it learns."""
        del key
        answer_qc = jnp.exp(-RDCPlus()(on_features(task, feat_nd)))
        label_sc = jax.nn.one_hot(task.support_labels, task.num_classes)
        member_nc = jnp.concatenate([label_sc, answer_qc])
        # From chance, 0, to one class alone, 1.
        chance = 1 / task.num_classes
        weight_n = ((member_nc.max(axis=1) - chance) / (1 - chance)) ** self.confidence
        mean_cd = (weight_n[:, None] * member_nc).T @ l2_normalize(feat_nd)
        head = {"kernel": l2_normalize(mean_cd).T}
        return head, Answers(feat_nd, member_nc, weight_n)

    def loss(
        self,
        head_params: Any,
        targets: Answers,
        feat_nd: Float[Array, "n d"],
        out: dict[str, Any],
        task: Task,
    ) -> Float[Array, ""]:
        """Cross-entropy of the classifier and the soft answers, the sure ones more."""
        del out, task
        logit_nc = l2_normalize(feat_nd) @ head_params["kernel"] / self.temperature
        entropy_n = -(targets.member * jax.nn.log_softmax(logit_nc)).sum(axis=1)
        return (targets.weight * entropy_n).sum() / targets.weight.sum()

    def classify(self, state: State, task: Task) -> Float[Array, "q c"]:
        """Answer by RDC+ on the prepared features, side by side."""
        rows_nd = _prepared(self.features(state, task), task)
        if self.together:
            shots = max(len(task.support_labels) / task.num_classes, 1)
            before_nd = _prepared(state.targets.features, task)
            rows_nd = jnp.concatenate([before_nd, rows_nd / shots**0.5], axis=1)
        method: FeatureMethod = RDCPlus(prepare=())
        return method(on_features(task, rows_nd))


def _prepared(feat_nd: Float[Array, "n d"], task: Task) -> Float[Array, "n d"]:
    """Features as ``rdc_plus`` wants them."""
    ready = prepared(on_features(task, feat_nd), RDCPlus().prepare)
    return jnp.concatenate([ready.support, ready.query])
