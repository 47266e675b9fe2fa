"""Feature rows, l2-normalised, on the host and on every device."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from rdc_jax.core.rows import compute_dtype, l2_normalize, prepare_rows
from rdc_jax.rerank.blocks import map_rows, replicate

GROUP = 128  # The number of columns is a multiple of it.


def unit_rows(
    features: Num[ArrayLike, "n d"],
) -> tuple[Float[np.ndarray, "n d"], Bool[np.ndarray, " n"]]:
    """l2-normalise rows, block by block.

    Returns:
      The rows, at least float32, and which of them count: those that are finite.
    """
    features = np.asarray(features)
    n, d = features.shape
    unit_nd = np.empty((n, d), compute_dtype(features[:0]))
    valid_n = np.empty(n, bool)
    for part, block in map_rows(_unit_rows, (features,), (), row_size=4 * d):
        unit_nd[part], valid_n[part] = block
    return unit_nd, valid_n


def _unit_rows(
    rows: tuple[Num[Array, "b d"]], _: tuple[()]
) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
    prepared = prepare_rows(rows[0])
    return l2_normalize(prepared.feat), prepared.valid


class Columns(NamedTuple):
    """The rows that are searched, on every device; see ``make_columns``."""

    feat_md: Float[Array, "m d"]
    valid_m: Bool[Array, " m"]


def make_columns(
    *parts: tuple[Float[np.ndarray, "_ d"], Bool[np.ndarray, " _"]],
) -> Columns:
    """Put the rows to search on every device.

    Args:
      *parts: l2-normalised rows, and which of them count; one part follows the other.
    """
    feat, valid = zip(*parts, strict=True)
    extra, d = -sum(map(len, feat)) % GROUP, feat[0].shape[1]
    feat_md = np.concatenate([*feat, np.zeros((extra, d), feat[0].dtype)])
    valid_m = np.concatenate([*valid, np.zeros(extra, bool)])
    return Columns(*replicate((feat_md, valid_m)))
