"""What heads that answer a whole task have in common."""

from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    get_args,
    runtime_checkable,
)

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from rdc_jax.core.prototypes import membership
from rdc_jax.core.rows import prepare_rows
from rdc_jax.runtime.errors import UserError

Inputs = Literal["features", "maps"]


class Episode(NamedTuple):
    """One task, as heads take it; rows that do not count are zero. A pytree.

    Attributes:
      support: Features ``[s, d]`` or maps ``[s, h, w, d]``.
      label: ``[s, c]``, one-hot; zero for supports of no class.
      query: ``[q, ...]``.
      query_valid: ``[q]``, False for padding and for rows that are not finite.
      query_broken: ``[q]``, rows that are not padding but hold NaN or infinity.
      query_labels: ``[q]``, for heads that say that they use them; None as a rule.
    """

    support: Float[Array, "s ..."]
    label: Float[Array, "s c"]
    query: Float[Array, "q ..."]
    query_valid: Bool[Array, " q"]
    query_broken: Bool[Array, " q"]
    query_labels: Int[Array, " q"] | None = None

    @property
    def support_valid(self) -> Bool[Array, " s"]:
        """Supports of a class: no padding, and finite."""
        return self.label.sum(axis=1) > 0

    @property
    def rows(self) -> Float[Array, "n ..."]:
        """Supports, then queries."""
        return jnp.concatenate([self.support, self.query])

    @property
    def valid(self) -> Bool[Array, " n"]:
        """Which rows count."""
        return jnp.concatenate([self.support_valid, self.query_valid])


@runtime_checkable
class EpisodeHead(Protocol):
    """A linen module that answers all queries of a task together.

    Attributes:
      inputs: What it takes of the backbone.
      way: Classes of its tasks, where its weights depend on them; else None.
    """

    inputs: ClassVar[Inputs]
    way: int | None

    def __call__(self, episode: Episode, *, train: bool = False) -> Float[Array, "q c"]:
        """Give logits; queries may come in any order, and get theirs in it.

        Args:
          episode: The task.
          train: Normalise as in training, and update running statistics.
        """


def check_choices(head: Any, **choices: Any) -> None:
    """Refuse options of a head that are not among those of their ``Literal``.

    Raises:
      UserError: It names the option and the choices.
    """
    for name, kind in choices.items():
        if (value := getattr(head, name)) not in get_args(kind):
            known = ", ".join(get_args(kind))
            raise UserError(f"{name}={value} of a head: choose from {known}")


def make_episode(
    support: Float[ArrayLike, "s ..."],
    labels_s: Int[ArrayLike, " s"],
    query: Float[ArrayLike, "q ..."],
    num_classes: int,
    *,
    support_mask: Bool[ArrayLike, " s"] | None = None,
    query_mask: Bool[ArrayLike, " q"] | None = None,
    query_labels: Int[ArrayLike, " q"] | None = None,
) -> Episode:
    """Make an episode of the arrays of a task.

    Args:
      support: Features or maps with labels.
      labels_s: Their classes; others than 0 … c-1 belong to no class.
      query: What is to be classified.
      num_classes: c, static.
      support_mask: False on padding.
      query_mask: False on padding.
      query_labels: For heads that say that they use them.
    """
    support, query = jnp.asarray(support), jnp.asarray(query)
    supports, queries = (
        prepare_rows(rows.reshape(len(rows), -1), mask)
        for rows, mask in ((support, support_mask), (query, query_mask))
    )
    member_sc = membership(labels_s, supports.valid, num_classes)
    known_s1 = member_sc.any(axis=1)[:, None]
    return Episode(
        jnp.where(known_s1, supports.feat, 0).reshape(support.shape),
        member_sc.astype(supports.feat.dtype),
        queries.feat.reshape(query.shape),
        queries.valid,
        queries.broken,
        None if query_labels is None else jnp.asarray(query_labels),
    )


def empty_episode(row: tuple[int, ...], *, way: int, shot: int, query: int) -> Episode:
    """Make an episode of zeros, to initialise a head with.

    Args:
      row: Shape of a row.
      way: Classes.
      shot: Supports of each.
      query: Queries of each.
    """
    labels_s, labels_q = (jnp.repeat(jnp.arange(way), n) for n in (shot, query))
    zeros = [jnp.zeros((way * n, *row)) for n in (shot, query)]
    return make_episode(zeros[0], labels_s, zeros[1], way, query_labels=labels_q)
