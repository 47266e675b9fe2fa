"""What methods on prepared features share: the task they see, and its arithmetic."""

import abc
import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from rdc_jax.core.preparation import DEFAULT_STEPS
from rdc_jax.core.prototypes import membership
from rdc_jax.core.rows import float_dtype, task_rows
from rdc_jax.methods.base import FeatureMethod, Task

_NEVER = -1e30  # Of the logit of a class that cannot be: finite, for gradients.
_HIGHEST = lax.Precision.HIGHEST


class PreparedTask(NamedTuple):
    """A task after preparation; rows that do not count are zero and unlabelled.

    A class mean is known by its weights on the rows, too: methods that move means many
    times need the rows' inner products alone, and no product with long features.

    Attributes:
      support: ``[s, d]``.
      query: ``[q, d]``.
      label: ``[s, c]``, one-hot; zero for supports of no class.
      counts: ``[q]``, one for queries that count, zero for the others.
      gram: ``[n, n]``, inner products of the rows, supports first.
    """

    support: Float[Array, "s d"]
    query: Float[Array, "q d"]
    label: Float[Array, "s c"]
    counts: Float[Array, " q"]
    gram: Float[Array, "n n"]

    @property
    def rows(self) -> Float[Array, "n d"]:
        """Supports, then queries."""
        return jnp.concatenate([self.support, self.query])

    @property
    def labels(self) -> Float[Array, "n c"]:
        """``label`` for the supports, zero for the queries."""
        return jnp.pad(self.label, ((0, self.query.shape[0]), (0, 0)))

    @property
    def valid(self) -> Bool[Array, " n"]:
        """Rows that may take part in a graph: supports of a class, and queries."""
        return jnp.concatenate([self.label.sum(axis=1), self.counts]) > 0

    @property
    def shots(self) -> Float[Array, " c"]:
        """Supports of each class."""
        return self.label.sum(axis=0)

    @property
    def prototypes(self) -> Float[Array, "c d"]:
        """Means of the classes' supports; zero for a class without any."""
        return self.means(self.nothing)

    @property
    def nothing(self) -> Float[Array, "q c"]:
        """Answers of queries that belong to no class."""
        q, c = self.counts.shape[0], self.label.shape[1]
        return jnp.zeros((q, c), self.label.dtype)

    def weights(self, answer_qc: Float[Array, "q c"]) -> Float[Array, "n c"]:
        """Class means over the supports and, by the answers, the queries, as weights.

        Zero for a class without rows.
        """
        answer_qc = answer_qc.astype(self.label.dtype)
        member_nc = jnp.concatenate([self.label, answer_qc])
        mass_1c = member_nc.sum(axis=0, keepdims=True)
        return member_nc / jnp.where(mass_1c > 0, mass_1c, 1)

    def means(self, answer_qc: Float[Array, "q c"]) -> Float[Array, "c d"]:
        """The same as features."""
        return inner(self.weights(answer_qc).T, self.rows.T)

    def squares(self, weight_nc: Float[Array, "n c"]) -> Float[Array, "n c"]:
        """Squared distances of all rows to sums of rows of these weights."""
        product_nc = inner(self.gram, weight_nc.T)
        own_1c = (weight_nc * product_nc).sum(axis=0, keepdims=True)
        return jnp.diag(self.gram)[:, None] + own_1c - 2 * product_nc

    def answers(self, logit_qc: Float[Array, "q c"]) -> Float[Array, "q c"]:
        """Softmax over the classes that have supports; zero for other rows."""
        return jax.nn.softmax(self.possible(logit_qc), axis=1) * self.counts[:, None]

    def possible(self, logit_nc: Float[Array, "n c"]) -> Float[Array, "n c"]:
        """The logits, very negative where a class has no supports."""
        return jnp.where(self.shots[None, :] > 0, logit_nc, _NEVER)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreparedMethod(FeatureMethod):
    """A method that answers by the prepared features of one task.

    A subclass gives ``distances``; rows that do not count are dealt with here.

    Attributes:
      prepare: Steps of ``rdc_jax.prepare``, in order.
    """

    prepare: tuple[str, ...] = DEFAULT_STEPS

    def __post_init__(self) -> None:
        super().__post_init__()
        of_features = {field.name for field in dataclasses.fields(FeatureMethod)}
        for field in dataclasses.fields(self):
            if field.name in of_features:
                continue
            value = getattr(self, field.name)
            if type(value) is int and value < 1:
                raise ValueError(f"{field.name} must be at least 1, got {value}")
            if type(value) is float and not 0 <= value < math.inf:
                raise ValueError(f"{field.name} must not be negative, got {value}")

    def class_distances(self, task: Task) -> Float[Array, "q c"]:
        """Infinite for a class without supports, NaN for queries that are not finite.

        Zero for padded queries. Supports of no class, or not finite, are left out.
        """
        rows = task_rows(task.support, task.query, task.support_mask, task.query_mask)
        s = len(task.support_labels)
        member_sc = membership(task.support_labels, rows.valid[:s], task.num_classes)
        label_sc = member_sc.astype(rows.feat.dtype)
        known_s1 = member_sc.any(axis=1)[:, None]
        support_sd, query_qd = jnp.where(known_s1, rows.feat[:s], 0), rows.feat[s:]
        feat_nd = jnp.concatenate([support_sd, query_qd])
        arranged = PreparedTask(
            support=support_sd,
            query=query_qd,
            label=label_sc,
            counts=rows.valid[s:].astype(rows.feat.dtype),
            gram=inner(feat_nd, feat_nd),
        )
        dist_qc = self.distances(arranged)
        dist_qc = jnp.where(arranged.shots[None, :] > 0, dist_qc, jnp.inf)
        filler_q1 = jnp.where(rows.broken[s:], jnp.nan, 0.0)[:, None]
        dist_qc = jnp.where(rows.valid[s:, None], dist_qc, filler_q1)
        return dist_qc.astype(float_dtype(task.query))

    @abc.abstractmethod
    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """Class distances, of any value for rows and classes that do not count."""


def inner(a_nd: Float[Array, "n d"], b_md: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """Inner products of rows."""
    return jnp.einsum("nd,md->nm", a_nd, b_md, precision=_HIGHEST)


def squared(x_qd: Float[Array, "q d"], mean_cd: Float[Array, "c d"]) -> Array:
    """Squared distances of rows to means, ``[q, c]``."""
    x_q1 = jnp.square(x_qd).sum(axis=1, keepdims=True)
    mean_1c = jnp.square(mean_cd).sum(axis=1)[None, :]
    return x_q1 + mean_1c - 2 * inner(x_qd, mean_cd)


def surprise(answer_qc: Float[Array, "q c"]) -> Float[Array, "q c"]:
    """Class distances of soft answers, ``-log``; finite where an answer is zero."""
    tiny = jnp.finfo(answer_qc.dtype).tiny
    return -jnp.log(jnp.maximum(answer_qc, tiny))
