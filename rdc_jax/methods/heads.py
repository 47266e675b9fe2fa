"""Methods that answer by a head which was trained for whole tasks."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rdc_jax.core.rows import float_dtype
from rdc_jax.methods.base import Method, Task
from rdc_jax.models.heads.episode import Episode, Inputs, make_episode
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeadMethod(Method):
    """The logits of the model's head; a subclass names the head."""

    def __call__(self, task: Task, model: Model | None = None) -> Float[Array, "q c"]:
        """Give the logits with a minus sign, in the dtype of the features."""
        return self.answer(task, model)

    def answer(
        self,
        task: Task,
        model: Model | None,
        query_labels: Int[Array, " q"] | None = None,
    ) -> Float[Array, "q c"]:
        """Answer, with labels of queries for a head that is to be measured so."""
        if model is None:
            raise UserError(f"method {self.name} needs a model with a {self.head} head")
        episode = episode_of(task)._replace(query_labels=query_labels)
        logits_qc = self.with_options(model).apply_head(episode)
        return distances_of(episode, logits_qc).astype(float_dtype(task.query))

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse other heads, and heads for other numbers of classes."""
        super().check(task, model)
        check_way(task, None if model is None else self.with_options(model))

    def with_options(self, model: Model) -> Model:
        """The model with what the method changes of its head's options."""
        return model


def check_way(task: Task, model: Model | None) -> None:
    """Refuse a head for another number of classes.

    Raises:
      UserError: It says for how many the head is.
    """
    way = getattr(model.head, "way", None) if model else None
    if way not in (None, task.num_classes):
        raise UserError(
            f"the head of this checkpoint is for {way} classes, the tasks have "
            f"{task.num_classes}: set --config.way={way}, or train another head"
        )


def inputs_of(model: Model) -> Inputs:
    """What the model's head takes of its network."""
    head: Any = model.head
    kind: Inputs = head.inputs
    return kind


def replaced(model: Model, **options: Any) -> Model:
    """Give the model with other options of its head; empty ones stay as they are."""
    given = {name: value for name, value in options.items() if value}
    pairs = {**dict(model.spec.head_options), **given}.items()
    spec = dataclasses.replace(model.spec, head_options=tuple(sorted(pairs)))
    return model.replace(spec=spec)


def episode_of(task: Task) -> Episode:
    """The task as heads take it."""
    return make_episode(
        *(task.support, task.support_labels, task.query, task.num_classes),
        support_mask=task.support_mask,
        query_mask=task.query_mask,
    )


def distances_of(
    episode: Episode, logits_qc: Float[Array, "q c"]
) -> Float[Array, "q c"]:
    """Class distances of logits.

    Infinite for a class without supports, NaN for queries that are not finite, zero for
    padding.
    """
    known_c = episode.label.sum(axis=0) > 0
    dist_qc = jnp.where(known_c[None, :], -logits_qc, jnp.inf)
    filler_q1 = jnp.where(episode.query_broken, jnp.nan, 0.0)[:, None]
    return jnp.where(episode.query_valid[:, None], dist_qc, filler_q1)
