"""Which method a task wants, and how hard it is, from the task alone.

No label of a query is used. How often neighbours are of one class, the *purity* that
methods on neighbours live by, is estimated: each row gets soft answers from the class
means, and neighbours agree as far as their answers do. ``docs/transductive.md`` says
how far the estimate held.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from rdc_jax.core.preparation import prepare

# One for all tasks: a linear head where many images are labelled is not better, and a
# rule for the number of neighbours is worth nothing (docs/transductive.md).
_METHOD = "rdc_plus"

_NEIGHBOURS = 10  # That the purity is estimated of.
_TEMPERATURE = 5.0  # Of the answers, softmax(-5 d²).
_MOST_QUERIES = 2048  # An even sample of them is looked at.
_ROWS, _CLASSES = 64, 8  # Sizes are rounded up, so that few programs serve all tasks.
_HIGHEST = lax.Precision.HIGHEST


class Advice(NamedTuple):
    """What to use on a task, and why.

    Attributes:
      method: For ``rdc_jax.get``, ``config.methods`` and ``RDCClassifier``.
      classes: How many there are.
      shots: Labelled rows of a class, the mean.
      queries: Rows that have no label.
      purity: Estimated share of the 10 nearest neighbours of a row, in prepared
        features, that are of its class.
    """

    method: str
    classes: int
    shots: float
    queries: int
    purity: float

    def __str__(self) -> str:
        """One line: the method, and the evidence for it."""
        return (
            f"{self.method}: {self.classes} classes with {self.shots:.3g} labelled "
            f"each, {self.queries} to classify; about {self.purity:.0%} of neighbours "
            "are of one class"
        )


def advise(features: Num[ArrayLike, "n d"], labels: Int[ArrayLike, " n"]) -> Advice:
    """Recommend a method on features for one task, and estimate how hard the task is.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> import rdc_jax
      >>> centres = jax.random.normal(jax.random.key(0), (5, 1, 64))
      >>> features = centres + jax.random.normal(jax.random.key(1), (5, 16, 64))
      >>> labels = jnp.full((5, 16), -1).at[:, 0].set(jnp.arange(5))
      >>> advice = rdc_jax.advise(features.reshape(80, 64), labels.reshape(80))
      >>> advice.method, advice.shots, advice.queries
      ('rdc_plus', 1.0, 75)

    Args:
      features: All rows of the task, labelled or not.
      labels: The class of each row, 0 … c-1; -1 for rows that are to be classified.

    Returns:
      The advice with its evidence; as text, one line.

    Raises:
      TypeError: Labels are not integers.
      ValueError: Shapes do not fit, rows are not finite, a class has no label, or all
        rows have one.
    """
    feat_nd, labels_n = _checked(np.asarray(features), np.asarray(labels))
    support_s = np.flatnonzero(labels_n >= 0)
    query_q = np.flatnonzero(labels_n < 0)
    classes, queries = int(labels_n.max()) + 1, len(query_q)
    if queries > _MOST_QUERIES:
        chosen = np.linspace(0, queries - 1, _MOST_QUERIES).astype(int)
        feat_nd, labels_n = (
            x[np.concatenate([support_s, query_q[chosen]])] for x in (feat_nd, labels_n)
        )
    purity = _purity(*_padded(feat_nd, labels_n), _rounded(classes))
    return Advice(_METHOD, classes, len(support_s) / classes, queries, float(purity))


def _checked(
    feat_nd: np.ndarray, labels_n: np.ndarray
) -> tuple[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]]:
    if feat_nd.ndim != 2 or labels_n.shape != feat_nd.shape[:1]:
        raise ValueError(
            f"features [n, d] and labels [n] have shapes {feat_nd.shape} and "
            f"{labels_n.shape}: give a label for each row, -1 where there is none"
        )
    if not np.issubdtype(labels_n.dtype, np.integer):
        raise TypeError(f"labels must be integers, got {labels_n.dtype}")
    feat_nd = feat_nd.astype(np.float32)
    if not np.isfinite(feat_nd).all():
        raise ValueError("features have NaN or infinity: leave such rows out")
    known = np.unique(labels_n[labels_n >= 0])
    if not np.array_equal(known, np.arange(len(known))) or not len(known):
        raise ValueError(
            f"labels name the classes {known.tolist()}: give 0 … c-1, each at least "
            "once, and -1 to rows without a label"
        )
    if (labels_n >= 0).all():
        raise ValueError("all rows have a label: give -1 to those to be classified")
    return feat_nd, labels_n.astype(np.int32)


def _padded(
    feat_nd: Float[np.ndarray, "n d"], labels_n: Int[np.ndarray, " n"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows with zeros after them, up to one of a few sizes, and their mask."""
    n, size = len(labels_n), _ROWS
    while size < n:
        size *= 2
    more = size - n
    return (
        np.pad(feat_nd, ((0, more), (0, 0))),
        np.pad(labels_n, (0, more), constant_values=-1),
        np.arange(size) < n,
    )


def _rounded(classes: int) -> int:
    return -(-classes // _CLASSES) * _CLASSES


@functools.partial(jax.jit, static_argnames="num_classes")
def _purity(
    feat_nd: Float[Array, "n d"],
    labels_n: Int[Array, " n"],
    valid_n: Bool[Array, " n"],
    num_classes: int,
) -> Float[Array, ""]:
    """Estimated share of neighbours that are of a row's class."""
    prepared_nd = prepare(feat_nd, mask=valid_n)
    answer_nc = _answers(prepared_nd, jax.nn.one_hot(labels_n, num_classes))
    near_nn = _nearest(prepared_nd, valid_n)
    alike_nn = jnp.einsum("nc,mc->nm", answer_nc, answer_nc, precision=_HIGHEST)
    return jnp.where(near_nn, alike_nn, 0).sum() / near_nn.sum()


def _answers(
    feat_nd: Float[Array, "n d"], label_nc: Float[Array, "n c"]
) -> Float[Array, "n c"]:
    """Labels of the rows that have one, soft answers of the class means for others."""
    count_c = label_nc.sum(axis=0)
    total_cd = jnp.einsum("nc,nd->cd", label_nc, feat_nd, precision=_HIGHEST)
    mean_cd = total_cd / jnp.maximum(count_c, 1)[:, None]
    inner_nc = jnp.einsum("nd,cd->nc", feat_nd, mean_cd, precision=_HIGHEST)
    # Less the squared length of the row, which is the same for all classes.
    dist_nc = jnp.square(mean_cd).sum(axis=1) - 2 * inner_nc
    logit_nc = jnp.where(count_c > 0, -_TEMPERATURE * dist_nc, -jnp.inf)
    known_n1 = label_nc.any(axis=1, keepdims=True)
    return jnp.where(known_n1, label_nc, jax.nn.softmax(logit_nc, axis=1))


def _nearest(
    feat_nd: Float[Array, "n d"], valid_n: Bool[Array, " n"]
) -> Bool[Array, "n n"]:
    """Which rows are among the nearest others of each row."""
    n = len(feat_nd)
    cosine_nn = jnp.einsum("nd,md->nm", feat_nd, feat_nd, precision=_HIGHEST)
    other_nn = valid_n[:, None] & valid_n[None, :] & ~jnp.eye(n, dtype=bool)
    cosine_nn = jnp.where(other_nn, cosine_nn, -jnp.inf)
    least_n1 = lax.top_k(cosine_nn, min(_NEIGHBOURS, n - 1))[0][:, -1:]
    return (cosine_nn >= least_n1) & other_nn
