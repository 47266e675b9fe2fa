"""Ranking Distance Calibration of one task: in one space, and in two combined."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from rdc_jax.core.distances import pairwise_distances
from rdc_jax.core.jaccard import encode, jaccard_distances, query_expansion
from rdc_jax.core.kernel_pca import kernel_pca
from rdc_jax.core.neighbours import neighbour_sets, rank_positions
from rdc_jax.core.params import RDCParams
from rdc_jax.core.prototypes import class_distances, membership, predictions
from rdc_jax.core.rows import (
    Rows,
    equal_rows,
    float_dtype,
    l2_normalize,
    mask_pairs,
    prepare_rows,
    task_rows,
)
from rdc_jax.core.shapes import check_episode
from rdc_jax.core.subspace import choose_solver, in_columns, tanh_subspace


class RDCOutput(NamedTuple):
    """What RDC knows of a task; rows are the supports, then the queries.

    Pairs with padding are zero (False), pairs with a row that is not finite NaN.

    Attributes:
      class_distances: ``[q, c]``; the class of the smallest is the prediction.
      distances: ``[n, n]``, D̂_com.
      original: ``[n, n]``, D_o.
      neighbours: ``[n, n]``, R̂ in the original space.
    """

    class_distances: Float[Array, "q c"]
    distances: Float[Array, "n n"]
    original: Float[Array, "n n"]
    neighbours: Bool[Array, "n n"]

    @property
    def predictions(self) -> Int[Array, "..."]:
        """``[q]``, the nearest class; -1 for queries that are not finite."""
        return predictions(self.class_distances)


class Space(NamedTuple):
    """One space's distances before and after calibration, and its neighbour sets."""

    original: Float[Array, "n n"]
    calibrated: Float[Array, "n n"]
    neighbours: Bool[Array, "n n"]


def calibrate(
    rows: Rows,
    params: RDCParams,
    *,
    equal_nn: Bool[Array, "n n"],
    same_class_ss: Bool[Array, "s s"] | None = None,
) -> Space:
    """Re-rank one space's distances (Eq. 3-8).

    Args:
      rows: l2-normalised, supports first.
      params: See ``RDCParams``.
      equal_nn: Rows known to be equal. Not computed here: a projection moves equal rows
        apart by rounding, so the second space takes this from the features before it.
      same_class_ss: Supports of one class, if any are labelled.
    """
    # Eq. 3: D, [n, n].
    original_nn = pairwise_distances(
        rows.feat, equal_nn=equal_nn, valid_n=rows.valid, distance=params.distance
    )
    # Eq. 4: R(i, k), expanded to R̂(i, k). Every later step needs ranks below k + 1 or
    # k2 only, so farther ones are not found.
    depth = max(params.k + 1, params.k2)
    place_nn = rank_positions(original_nn, rows.valid, depth)
    sets_nn = neighbour_sets(place_nn, params=params, same_class_ss=same_class_ss)
    # Eq. 5: each set as a row V_i of n weights.
    code_nn = encode(original_nn, sets_nn, normalize=params.normalize)
    # After Eq. 5: V_i is the mean over the k2 nearest rows, i itself included.
    code_nn = query_expansion(code_nn, place_nn < params.k2)
    # Eq. 7, which is Eq. 6 with weights for members, then Eq. 8: λ D + (1 - λ) D_J.
    # λ may be traced in any dtype, and must not change that of D.
    lam = jnp.asarray(params.lam, original_nn.dtype)
    calibrated_nn = lam * original_nn + (1 - lam) * jaccard_distances(code_nn)
    return Space(original_nn, calibrated_nn, sets_nn)


def project(rows: Rows, params: RDCParams) -> Float[Array, "n p"]:
    """Rows of a task in the subspace that ``params`` asks for."""
    feat_nd = rows.feat if params.kernel_input == "raw" else l2_normalize(rows.feat)
    match params.subspace:
        case "none":
            return feat_nd
        case "tanh":
            if params.centre:
                # Padding is zero, and stays out of the mean and of the kernel.
                count = jnp.maximum(rows.valid.sum(), 1).astype(feat_nd.dtype)
                centred_nd = feat_nd - feat_nd.sum(axis=0, keepdims=True) / count
                feat_nd = jnp.where(rows.valid[:, None], centred_nd, 0)
            return tanh_subspace(
                feat_nd,
                params.dim,
                valid_n=rows.valid,
                solver=choose_solver(feat_nd.shape, params),
            )
        case kernel:
            return kernel_pca(feat_nd, params.dim, valid_n=rows.valid, kernel=kernel)


def subspace(
    features: Num[ArrayLike, "n d"],
    params: RDCParams = RDCParams(),
    *,
    mask: Bool[ArrayLike, " n"] | None = None,
) -> Float[Array, "n p"]:
    """Project a task's features into its subspace (Eq. 9).

    Example:
      >>> import jax
      >>> import rdc_jax
      >>> features = jax.random.normal(jax.random.key(0), (30, 256))
      >>> rdc_jax.subspace(features, rdc_jax.RDCParams(dim=16)).shape
      (30, 16)

    Args:
      features: Rows of one task.
      params: Uses ``subspace``, ``dim``, ``kernel_input``, ``centre``, ``solver``.
      mask: False on rows that are padding.

    Returns:
      Coordinates, not normalised, unique up to a rotation; zero for padding, NaN for
      rows that are not finite.
    """
    coordinates_nm = marked_projection(prepare_rows(features, mask), params)
    return in_columns(coordinates_nm, params.dim).astype(float_dtype(features))


def marked_projection(rows: Rows, params: RDCParams) -> Float[Array, "n m"]:
    """``project``, with NaN for rows that are not finite."""
    return jnp.where(rows.broken[:, None], jnp.nan, project(rows, params))


def calibrated_distances(
    features: Num[ArrayLike, "n d"],
    params: RDCParams = RDCParams(),
    *,
    support_labels: Int[ArrayLike, " s"] | None = None,
    mask: Bool[ArrayLike, " n"] | None = None,
) -> Float[Array, "n n"]:
    """Calibrate the distances of one feature matrix by k-reciprocal re-ranking.

    Works in the given space alone; ``params.subspace`` and what belongs to it have no
    effect.

    Example:
      >>> import jax
      >>> import rdc_jax
      >>> features = jax.random.normal(jax.random.key(0), (30, 8))
      >>> rdc_jax.calibrated_distances(features, rdc_jax.RDCParams(k=5, k2=3)).shape
      (30, 30)

    Args:
      features: Rows to compare; those that ``support_labels`` belongs to come first.
      params: See ``RDCParams``.
      support_labels: Classes of the first s rows; negative ones belong to no class.
        ``None``: nothing is labelled.
      mask: False on rows that are padding.

    Returns:
      λD + (1-λ)D_J (Eq. 8); zero at pairs with padding, NaN at pairs with a row that
      is not finite.
    """
    rows = prepare_rows(features, mask)
    same_class_ss = None
    if support_labels is not None:
        same_class_ss = _same_class(support_labels, rows)
    unit = rows._replace(feat=l2_normalize(rows.feat))
    space = calibrate(
        unit, params, equal_nn=equal_rows(unit.feat), same_class_ss=same_class_ss
    )
    return mask_pairs(space.calibrated, rows, float_dtype(features))


def original_distances(
    features: Num[ArrayLike, "n d"],
    params: RDCParams = RDCParams(),
    *,
    mask: Bool[ArrayLike, " n"] | None = None,
    normalize: bool = True,
) -> Float[Array, "n n"]:
    """Compute D_o alone (Eq. 3), with a gradient: what fine-tuning trains.

    Args:
      features: Rows to compare.
      params: ``distance`` is used.
      mask: False on rows that are padding.
      normalize: Compare l2-normalised rows, not rows as they are.

    Returns:
      The same numbers as ``RDCOutput.original``.
    """
    rows = prepare_rows(features, mask)
    feat_nd = l2_normalize(rows.feat) if normalize else rows.feat
    original_nn = pairwise_distances(
        feat_nd,
        equal_nn=equal_rows(feat_nd),
        valid_n=rows.valid,
        distance=params.distance,
    )
    return mask_pairs(original_nn, rows, float_dtype(features))


def _same_class(
    labels_s: Int[ArrayLike, " s"], rows: Rows, num_classes: int | None = None
) -> Bool[Array, "s s"]:
    """Supports of one class; with a label out of range, each by itself."""
    labels_s = jnp.asarray(labels_s)
    known_s = labels_s >= 0
    if num_classes is not None:
        known_s &= labels_s < num_classes
    valid_s = rows.valid[: labels_s.shape[0]]
    # A support of no class keeps to itself, or it would lose even its own row.
    alone_ss = jnp.eye(labels_s.shape[0], dtype=bool)
    same_ss = (labels_s[:, None] == labels_s[None, :]) & known_s[:, None]
    return (same_ss | alone_ss) & valid_s[:, None] & valid_s[None, :]


def rdc(
    support: Num[ArrayLike, "s d"],
    support_labels: Int[ArrayLike, " s"],
    query: Num[ArrayLike, "q d"],
    num_classes: int,
    *,
    params: RDCParams = RDCParams(),
    support_mask: Bool[ArrayLike, " s"] | None = None,
    query_mask: Bool[ArrayLike, " q"] | None = None,
) -> RDCOutput:
    """Classify the queries of one episode by calibrated distances.

    The distances within the task are re-ranked in the original space and in the task's
    subspace, and averaged. Defined for every input: neighbourhoods larger than the
    task are the whole task, rows that are not finite are nobody's neighbour.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> import rdc_jax
      >>> centres = jax.random.normal(jax.random.key(0), (5, 256))
      >>> noise = jax.random.normal(jax.random.key(1), (5, 16, 256))
      >>> images = centres[:, None] + noise
      >>> support, query = images[:, 0], images[:, 1:].reshape(75, 256)
      >>> out = rdc_jax.rdc(support, jnp.arange(5), query, num_classes=5)
      >>> bool((out.predictions == jnp.repeat(jnp.arange(5), 15)).all())
      True

    Args:
      support: Features of the labelled images.
      support_labels: Their classes, 0 … c-1, or -1 for no class.
      query: Features of the images to classify.
      num_classes: Number of classes c, static.
      params: See ``RDCParams``.
      support_mask: False on rows that are padding.
      query_mask: The same for the queries.

    Returns:
      See ``RDCOutput``. Class distances are infinite for a class without supports,
      zero for padded queries and NaN for queries that are not finite.

    Raises:
      ValueError: Shapes do not fit. ``rdc_jax.rdc`` also checks the values of arrays
        that are not traced, where no ``support_mask`` is given: all labels are 0 … c-1
        or -1, every class has a support, supports are finite. Traced or masked,
        any other label means no class, and such supports are left out.
    """
    check_episode(support, support_labels, query, num_classes)
    dtype = float_dtype(query)
    rows = task_rows(support, query, support_mask, query_mask)
    same_class_ss = _same_class(support_labels, rows, num_classes)

    # D̂_o: the original space.
    unit = rows._replace(feat=l2_normalize(rows.feat))
    equal_nn = equal_rows(unit.feat)
    space = calibrate(unit, params, equal_nn=equal_nn, same_class_ss=same_class_ss)
    combined_nn = space.calibrated
    if params.subspace != "none":
        # Rows of one direction and two lengths are equal above, but not to a kernel of
        # raw rows.
        if params.kernel_input == "raw":
            equal_nn = equal_rows(rows.feat)
        # D̂_sub: the task's subspace (Eq. 9-10), and D̂_com = (D̂_o + D̂_sub) / 2.
        projected = rows._replace(feat=l2_normalize(project(rows, params)))
        second = calibrate(
            projected, params, equal_nn=equal_nn, same_class_ss=same_class_ss
        )
        combined_nn = (space.calibrated + second.calibrated) / 2

    # A query's distance to a class: the mean, or the least, over the class's supports.
    s = jnp.shape(support)[0]
    member_sc = membership(support_labels, rows.valid[:s], num_classes)
    dist_qc = class_distances(combined_nn[s:, :s], member_sc, params.linkage)
    filler_q1 = jnp.where(rows.broken[s:], jnp.nan, 0.0)[:, None]
    dist_qc = jnp.where(rows.valid[s:, None], dist_qc, filler_q1)
    return RDCOutput(
        class_distances=dist_qc.astype(dtype),
        distances=mask_pairs(combined_nn, rows, dtype),
        original=mask_pairs(space.original, rows, dtype),
        neighbours=space.neighbours,
    )
