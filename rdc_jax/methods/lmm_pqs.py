"""LMM-PQS (Yeh et al., CVPR workshop 2020): prototypes and pseudo queries."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.core.rows import l2_normalize
from rdc_jax.data.transforms import pseudo_samples
from rdc_jax.methods.adapt import on_features
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.tuned import (
    State,
    Tuned,
    class_means,
    cross_entropy,
    forward,
    nearest_by_cosine,
)
from rdc_jax.models.model import Model

_TINY = 1e-6  # That torch adds to differences, so that none is without direction.


@register("lmm_pqs")
@dataclasses.dataclass(frozen=True, kw_only=True)
class LMMPQS(Tuned):
    """All layers, so that pseudo queries find the prototypes of their classes.

    The batch's statistics normalise in training and in the answer, queries by
    themselves: so a query's answer depends on the others.

    Attributes:
      steps: Of Adam, on all supports and pseudo queries at once.
      learning_rate: Of Adam.
      pseudo: How many pseudo queries a step has; 0: 100 with 5 shots, else 200.
      margin: Of the triplet loss, between own and other prototypes.
      scale: Of the cosines in the large-margin loss.
      cosine_margin: By which the cosine of the true class is lowered.
    """

    title = "LMM-PQS"
    transductive = True

    steps: int = 100
    learning_rate: float = 1e-3
    pseudo: int = 0
    margin: float = 1.0
    scale: float = 30.0
    cosine_margin: float = 0.35

    def optimiser(self) -> optax.GradientTransformation:
        """Adam."""
        return optax.adam(self.learning_rate)

    def step(self, state: State, task: Task, key: Key[Array, ""]) -> State:
        """Make one step on the supports and new pseudo queries."""
        images = self.transformed(state, task.support)
        versions = self.versions(len(images), task.num_classes)
        drawn = pseudo_samples(key, images, versions)
        drawn = drawn.reshape(-1, *images.shape[1:])
        labels_m = jnp.repeat(task.support_labels, versions)

        def loss(model: Model, head: Any) -> tuple[Float[Array, ""], Model]:
            del head
            # By themselves: each kind has its own batch statistics.
            feat_sd, model = forward(model, images)
            feat_md, model = forward(model, drawn)
            mean_cd = class_means(feat_sd, task.support_labels, task.num_classes)
            value = triplets(feat_sd, mean_cd, task.support_labels, self.margin)
            logit_mc = large_margin(
                *(feat_md, mean_cd, labels_m), self.scale, self.cosine_margin
            )
            return value + cross_entropy(logit_mc, labels_m), model

        return self.descend(state, loss)

    def versions(self, support_size: int, num_classes: int) -> int:
        """Pseudo queries of each support: 4 with 5 shots, 40 with one."""
        usual = 100 if support_size == 5 * num_classes else 200
        return max(1, (self.pseudo or usual) // support_size)

    def features(self, state: State, task: Task) -> Float[Array, "n d"]:
        """Supports and queries, each normalised by their own batch."""
        model = self.adapted(state)
        parts = [
            forward(model, self.transformed(state, images))[0]
            for images in (task.support, task.query)
        ]
        return jnp.concatenate(parts)

    def classify(self, state: State, task: Task) -> Float[Array, "q c"]:
        """The nearest prototype by the cosine."""
        return nearest_by_cosine(on_features(task, self.features(state, task)))


def triplets(
    feat_sd: Float[Array, "s d"],
    mean_cd: Float[Array, "c d"],
    labels_s: Int[Array, " s"],
    margin: float,
) -> Float[Array, ""]:
    """By how much a support is not nearer to its own prototype than to each other."""
    difference_scd = feat_sd[:, None] - mean_cd[None] + _TINY
    dist_sc = jnp.sqrt(jnp.square(difference_scd).sum(axis=2))
    own_s1 = jnp.take_along_axis(dist_sc, labels_s[:, None], axis=1)
    other_sc = labels_s[:, None] != jnp.arange(len(mean_cd))
    short_sc = jnp.maximum(own_s1 - dist_sc + margin, 0)
    return jnp.where(other_sc, short_sc, 0).sum() / other_sc.sum()


def large_margin(
    feat_md: Float[Array, "m d"],
    mean_cd: Float[Array, "c d"],
    labels_m: Int[Array, " m"],
    scale: float,
    margin: float,
) -> Float[Array, "m c"]:
    """CosFace (Wang et al. 2018): scaled cosines, the true class's less a margin."""
    cosine_mc = l2_normalize(feat_md) @ l2_normalize(mean_cd).T
    own_mc = jax.nn.one_hot(labels_m, len(mean_cd))
    return scale * (jnp.clip(cosine_mc, -1, 1) - margin * own_mc)
