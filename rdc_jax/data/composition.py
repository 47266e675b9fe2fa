"""How many supports and queries each class of a task has."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

from rdc_jax.data import philox
from rdc_jax.data.task_spec import Range, TaskSpec, span

# Of Meta-Dataset (Triantafillou et al. 2020): what a class counts at most for the size
# of a support set, and the logarithms of the weights that classes are drawn by.
_MOST_OF_A_CLASS = 100
_LOG_WEIGHTS = np.log([0.5, 2.0])


class Composition(NamedTuple):
    """Images of each class of tasks; zero for classes that a task does not have."""

    support: Int64[np.ndarray, "... c"]
    query: Int64[np.ndarray, "... c"]


def compose(
    spec: TaskSpec,
    ways: int,
    sizes: Sequence[Int64[np.ndarray, "e c"]],
    by_count: Float64[np.ndarray, "e c"],
    by_size: Float64[np.ndarray, "e u"],
) -> Composition:
    """Draw the sizes of tasks.

    Args:
      spec: The shape of a task.
      ways: Classes of the largest task that the data set has.
      sizes: Images of each chosen class: one pool, or supports and queries apart.
      by_count: Uniform numbers, for uneven queries.
      by_size: Uniform numbers, three and one a class, if tasks differ in size.
    """
    shape = by_count.shape
    if not spec.varies:
        there_ec = np.ones(shape, bool)
        query_e1 = np.full((shape[0], 1), span(spec.query)[1])
        support_ec = np.full(shape, span(spec.shot)[1])
    else:
        by_way, by_query, by_total, by_shot = np.split(by_size, [1, 2, 3], axis=1)
        fewest = span(spec.way)[0]
        there_ec = np.arange(shape[1]) < _drawn((fewest, ways), by_way)
        query_e1 = _drawn(span(spec.query), by_query)
        if spec.shot == "any":
            query_e1 = np.minimum(query_e1, _half_of_smallest(sizes, there_ec))
            room_ec = sizes[0] - (query_e1 if len(sizes) == 1 else 0)
            support_ec = _any_shots(
                spec, room_ec, sizes[0], there_ec, by_total, by_shot
            )
        else:
            support_ec = _drawn(span(spec.shot), by_shot)
    support_ec = np.where(there_ec, support_ec, 0)
    query_ec = np.where(there_ec, query_e1, 0)
    if spec.dirichlet is not None:
        # A Dirichlet draw is a row of gamma draws over its sum, and only their ratios
        # matter. The inverse distribution takes one uniform each, where rejection
        # sampling would take any number.
        weight_ec = special.gammaincinv(spec.dirichlet, by_count)
        room_ec = sizes[-1] - (support_ec if len(sizes) == 1 else 0)
        room_ec, weight_ec = (np.where(there_ec, x, 0) for x in (room_ec, weight_ec))
        total_e = query_ec.sum(axis=1)
        query_ec = philox.proportional_counts(weight_ec, room_ec, total_e)
    return Composition(support_ec, query_ec)


def _drawn(
    limits: Range, uniform: Float64[np.ndarray, "e u"]
) -> Int64[np.ndarray, "e u"]:
    """Whole numbers, both limits included."""
    low, high = limits
    return low + (uniform * (high - low + 1)).astype(np.int64)


def _half_of_smallest(
    sizes: Sequence[np.ndarray], there_ec: np.ndarray
) -> Int64[np.ndarray, "e 1"]:
    """Half of a task's smallest class; all of it, where queries lie apart."""
    size_ec = sizes[0] // 2 if len(sizes) == 1 else sizes[1]
    largest = np.iinfo(np.int64).max
    return np.where(there_ec, size_ec, largest).min(axis=1, keepdims=True)


def _any_shots(
    spec: TaskSpec,
    room_ec: Int64[np.ndarray, "e c"],
    size_ec: Int64[np.ndarray, "e c"],
    there_ec: np.ndarray,
    by_total: Float64[np.ndarray, "e 1"],
    by_shot: Float64[np.ndarray, "e c"],
) -> Int64[np.ndarray, "e c"]:
    """Supports as Meta-Dataset draws them.

    Their number in all is a random share of what the classes have to give. Each class
    gets one; the others go to classes by their size, times a random weight.
    """
    given_ec = np.floor(by_total * np.minimum(room_ec, _MOST_OF_A_CLASS)) + 1
    total_e1 = np.where(there_ec, given_ec, 0).sum(axis=1, keepdims=True)
    others_e1 = np.minimum(total_e1, spec.max_support)
    others_e1 = others_e1 - there_ec.sum(axis=1, keepdims=True)
    low, high = _LOG_WEIGHTS
    weight_ec = size_ec * np.exp(low + (high - low) * by_shot) * there_ec
    share_ec = weight_ec / weight_ec.sum(axis=1, keepdims=True)
    wanted_ec = np.floor(share_ec * others_e1).astype(np.int64) + 1
    return np.minimum(wanted_ec, room_ec)
