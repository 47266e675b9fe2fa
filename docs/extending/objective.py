r"""An objective of your own, and an adversary around any objective on tasks.

python run_pretrain.py --config=configs/pretrain.py:test --workdir=runs/cosine \
    --config.plugins=objective.py --config.method='cosine+adversarial(step=.02)' \
    --config.episode.way=4 --config.episode.shot=1 --config.episode.query=3
"""

import dataclasses

import jax
import jax.numpy as jnp

from rdc_jax.models.model import Model, Spec
from rdc_jax.pretrain.objectives import (
    Wrapper,
    classify,
    get_objective,
    register,
    spec_of,
)


@dataclasses.dataclass(frozen=True)
class Cosine:
    """Cross-entropy of a task's queries, by their cosines to the class means."""

    spec: Spec
    way: int
    shot: int
    scale: float

    batches = "tasks"  # Supports first, class by class; then the queries.
    method = "npc_l2"  # Answers the tasks of validation.
    metrics = ("accuracy",)

    def init(self, key, size):
        """Draw the weights of the backbone; a head would be a second part."""
        backbone = Model(self.spec, {}).backbone
        variables = backbone.init(key, jnp.zeros((1, size, size, 3)))
        return {kind: {"backbone": tree} for kind, tree in variables.items()}

    def loss(self, variables, batch, key, *, train=True):
        """Compute the loss of one task."""
        features, _, batch_stats = Model(self.spec, variables).apply(
            batch.images, train, key
        )
        s = self.way * self.shot
        means = features[:s].reshape(self.way, self.shot, -1).mean(axis=1)
        logits = self.scale * _unit(features[s:]) @ _unit(means).T
        return classify(logits, batch.labels[s:], batch_stats)


@dataclasses.dataclass(frozen=True)
class Adversarial(Wrapper):  # It has the other objective as ``inner``.
    """Trains on images that have been moved to raise the loss of another objective."""

    step: float

    own_metrics = ("clean_loss",)

    def loss(self, variables, batch, key, *, train=True):
        """Ascend on the images in eval mode, then take the loss there."""
        random_key, inner_key = jax.random.split(key)

        def loss_of(images):
            moved = batch._replace(images=images)
            return self.inner.loss(fixed, moved, inner_key, train=False)[0]

        # The adversary is fixed: no gradient of the weights goes through it.
        fixed = jax.lax.stop_gradient(variables)
        clean_loss, ascent = jax.value_and_grad(loss_of)(batch.images)
        length = self.step * jax.random.uniform(random_key)
        images = batch.images + length * jnp.sign(ascent)
        loss, aux = self.inner.loss(
            variables, batch._replace(images=images), inner_key, train=train
        )
        return loss, aux._replace(metrics=aux.metrics | {"clean_loss": clean_loss})


@register("cosine")
def cosine(options, num_classes, *, scale=10.0):
    """Classification of a few-shot task by cosines to its class means."""
    task = options.episode  # What stands after the star is set by config.method.
    return Cosine(spec_of(options), task.way, task.shot, scale)


@register("adversarial")
def adversarial(options, num_classes, *, inner="protonet", step=0.01):
    """Another objective, on images that an adversary has moved."""
    return Adversarial(get_objective(inner)(options, num_classes), step)


def _unit(rows):
    return rows / jnp.linalg.norm(rows, axis=-1, keepdims=True)
