"""From features or distances to class distances: nearest prototypes (Eq. 1-2)."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from rdc_jax.core.distances import cross_distances
from rdc_jax.core.params import Linkage
from rdc_jax.core.rows import float_dtype, l2_normalize, prepare_rows
from rdc_jax.core.shapes import check_episode


def membership(
    labels_s: Int[ArrayLike, " s"], valid_s: Bool[Array, " s"], num_classes: int
) -> Bool[Array, "s c"]:
    """Which support belongs to which class; rows that do not count, to none."""
    labels_s = jnp.asarray(labels_s)
    class_c = jnp.arange(num_classes, dtype=labels_s.dtype)
    return (labels_s[:, None] == class_c[None, :]) & valid_s[:, None]


def class_distances(
    dist_qs: Float[Array, "q s"], member_sc: Bool[Array, "s c"], linkage: Linkage
) -> Float[Array, "q c"]:
    """Distance of each query to each class, over the class's supports.

    Args:
      dist_qs: Distances between queries and supports.
      member_sc: Classes of the supports.
      linkage: ``mean`` or ``min`` over the supports of a class.

    Returns:
      ``[q, c]``; infinite for a class without supports.
    """
    empty_c = ~member_sc.any(axis=0)
    if linkage == "min":
        each_qsc = jnp.where(member_sc[None], dist_qs[:, :, None], jnp.inf)
        return each_qsc.min(axis=1)
    weight_sc = member_sc.astype(dist_qs.dtype)
    weight_sc = weight_sc / jnp.maximum(weight_sc.sum(axis=0, keepdims=True), 1)
    mean_qc = jnp.einsum(
        "qs,sc->qc",
        dist_qs,
        weight_sc,
        precision=lax.Precision.HIGHEST,
    )
    return jnp.where(empty_c[None, :], jnp.inf, mean_qc)


def predictions(class_distances: Float[ArrayLike, "... c"]) -> Int[Array, "..."]:
    """Nearest class of each query; -1 where there is none, as of queries with NaN.

    ``argmin`` alone takes NaN for the smallest, and answers class 0.

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.core.prototypes import predictions
      >>> predictions(jnp.array([[2.0, 1.0], [jnp.nan, jnp.nan]])).tolist()
      [1, -1]

    Args:
      class_distances: Of any number of queries, in any number of episodes.

    Returns:
      int32; -1 where a distance is NaN or all are infinite.
    """
    distances = jnp.asarray(class_distances)
    unknown = jnp.isnan(distances).any(axis=-1) | jnp.isposinf(distances).all(axis=-1)
    return jnp.where(unknown, -1, distances.argmin(axis=-1)).astype(jnp.int32)


def unknown_scores(class_distances: Float[ArrayLike, "... c"]) -> Float[Array, "..."]:
    """Score how little each query looks like any class: distance to the nearest.

    Scores order the queries of one task; they say nothing across tasks or methods.

    Args:
      class_distances: Of any number of queries, in any number of episodes.

    Returns:
      Larger for queries that look less like any class; infinite for those with NaN.
    """
    distances = jnp.asarray(class_distances)
    broken = jnp.isnan(distances).any(axis=-1)
    return jnp.where(broken, jnp.inf, distances.min(axis=-1))


def npc(
    support: Num[ArrayLike, "s d"],
    support_labels: Int[ArrayLike, " s"],
    query: Num[ArrayLike, "q d"],
    num_classes: int,
    *,
    normalize: bool = True,
    support_mask: Bool[ArrayLike, " s"] | None = None,
    query_mask: Bool[ArrayLike, " q"] | None = None,
) -> Float[Array, "q c"]:
    """Nearest prototype classifier: distances of queries to class means.

    Example:
      >>> import jax.numpy as jnp
      >>> import rdc_jax
      >>> support = jnp.array([[1.0, 0.0], [0.0, 2.0]])
      >>> query = jnp.array([[3.0, 0.1], [0.2, 1.0]])
      >>> rdc_jax.npc(support, jnp.array([0, 1]), query, num_classes=2).argmin(axis=1)
      Array([0, 1], dtype=int32)

    Args:
      support: Features of the labelled images.
      support_labels: Their classes, 0 … c-1, or -1 for no class.
      query: Features of the images to classify.
      num_classes: Number of classes c, static.
      normalize: l2-normalise the features first (the paper's "NPC + l2 norm").
      support_mask: False on rows that are padding.
      query_mask: The same for the queries.

    Returns:
      Euclidean distances; ``predictions`` gives the nearest. Infinite for a class
      without supports, zero for padded queries, NaN for queries that are not finite.
      Supports that are not finite are left out.

    Raises:
      ValueError: As ``rdc_jax.rdc``.
    """
    check_episode(support, support_labels, query, num_classes)
    dtype = float_dtype(query)
    supports = prepare_rows(support, support_mask)
    queries = prepare_rows(query, query_mask)
    support_sd, query_qd = supports.feat, queries.feat
    if normalize:
        support_sd, query_qd = l2_normalize(support_sd), l2_normalize(query_qd)
    member_sc = membership(support_labels, supports.valid, num_classes)
    # Eq. 1: the mean of a class's supports, as a product that sums them all at once.
    member_sc = member_sc.astype(support_sd.dtype)
    count_c1 = member_sc.sum(axis=0)[:, None]
    total_cd = jnp.einsum(
        "sc,sd->cd",
        member_sc,
        support_sd,
        precision=lax.Precision.HIGHEST,
    )
    # Eq. 2, up to the argmin. A class without supports has no mean: infinitely far.
    dist_qc = cross_distances(query_qd, total_cd / jnp.maximum(count_c1, 1))
    dist_qc = jnp.where(count_c1.T > 0, dist_qc, jnp.inf)
    filler_q1 = jnp.where(queries.broken, jnp.nan, 0.0)[:, None]
    return jnp.where(queries.valid[:, None], dist_qc, filler_q1).astype(dtype)
