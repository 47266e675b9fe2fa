"""Draws by task number, against plain loops."""

import math
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdc_jax.data import philox

_NUMBERS = st.lists(st.integers(0, 10**12), max_size=8)


def _shuffle_oracle(uniform_m, size):
    """Fisher and Yates' shuffle of a real list."""
    deck = list(range(size))
    for j, u in enumerate(uniform_m):
        target = j + int(u * (size - j))
        deck[j], deck[target] = deck[target], deck[j]
    return deck[: len(uniform_m)]


def _seats_oracle(weights, rooms, total):
    """One unit at a time to the class that is furthest below its share."""
    exponent = math.frexp(max(weights))[1]
    weights = [math.ldexp(weight, -exponent) for weight in weights]
    weights = [0.0 if weight < sys.float_info.min else weight for weight in weights]
    if not any(weights):
        weights = [1.0] * len(weights)
    counts = [0] * len(weights)
    for _ in range(total):
        claims = [
            weight / (count + 0.5) if count < room else -1.0
            for weight, count, room in zip(weights, counts, rooms, strict=True)
        ]
        counts[claims.index(max(claims))] += 1
    return counts


@given(_NUMBERS, st.integers(0, 2**128 - 1), st.integers(1, 9))
def test_a_row_depends_on_its_own_number_only(numbers, key, count):
    together = philox.uniforms(key, np.array(numbers, np.int64), count)
    assert together.shape == (len(numbers), count)
    for row, number in zip(together, numbers, strict=True):
        alone = philox.uniforms(key, np.array([number]), count)
        np.testing.assert_array_equal(row, alone[0])


def test_tasks_do_not_share_draws():
    uniform = philox.uniforms(5, np.arange(2000), 7)
    assert np.unique(uniform).size == uniform.size
    assert not np.isin(philox.uniforms(6, np.arange(2000), 7), uniform).any()
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 4 / np.sqrt(12 * uniform.size)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 12))
def test_sparse_shuffle_equals_a_real_shuffle(key, size, count):
    uniform = philox.uniforms(key, np.array([0]), 12)[0, : min(count, size)]
    picked = philox.without_replacement(uniform.tolist(), size)
    assert picked == _shuffle_oracle(uniform, size)


@pytest.mark.parametrize("size", [4, 1000, 2**31 - 1, 2**40])
def test_the_largest_draw_stays_in_range(size):
    picked = philox.without_replacement([1 - 2.0**-53] * 4, size)
    assert max(picked) < size
    assert len(set(picked)) == 4


def test_every_ordered_choice_is_equally_likely():
    rows = 60_000
    uniform = philox.uniforms(11, np.arange(rows), 2)
    picked = np.array([philox.without_replacement(row, 5) for row in uniform.tolist()])
    counts = np.bincount(picked[:, 0] * 5 + picked[:, 1], minlength=25)
    pairs = counts.reshape(5, 5)[~np.eye(5, dtype=bool)]
    chi_square = ((pairs - rows / 20) ** 2 / (rows / 20)).sum()
    assert np.trace(counts.reshape(5, 5)) == 0
    assert chi_square < 43.8  # 19 degrees of freedom, p = .001


@st.composite
def _seats(draw):
    """Weights, rooms that suffice, and a total."""
    weights = draw(st.lists(st.floats(0, 1e3), min_size=2, max_size=6))
    total = draw(st.integers(0, 40))
    c = len(weights)
    rooms = draw(st.lists(st.integers(total, 50), min_size=c, max_size=c))
    rooms[0] = draw(st.integers(0, 50))
    return weights, rooms, total


@given(_seats())
@example(([0.0, 5e-324], [40, 40], 40))
@example(([5e-324, 1.5e-323], [40, 40], 40))
@example(([1.0, 5e-324], [3, 40], 40))
@example(([1e3, 2.3e-308], [40, 40], 40))
@example(([0.0, 0.0, 0.0], [40, 40, 40], 40))
def test_counts_fill_the_total_within_the_room(seats):
    weights, rooms, total = seats
    counts = philox.proportional_counts(
        np.array([weights]), np.array([rooms]), total=total
    )
    assert counts.sum() == total
    assert (counts <= rooms).all()
    assert counts[0].tolist() == _seats_oracle(weights, rooms, total)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([0.0, 5e-324], [0, 8]),
        ([5e-324, 1.5e-323], [2, 6]),  # the smallest floats are in proportion
        ([1e308, 1.5e308], [3, 5]),  # and the largest
        ([1e3, 5e-324], [8, 0]),
        ([0.0, 0.0], [4, 4]),
    ],
)
def test_only_the_ratio_of_weights_counts(weights, expected):
    counts = philox.proportional_counts(
        np.array([weights]), np.full((1, 2), 9), total=8
    )
    assert counts[0].tolist() == expected


def test_counts_round_the_shares_where_there_is_room():
    weights = np.array([[5.0, 3.0, 2.0], [1.0, 1.0, 0.0]])
    counts = philox.proportional_counts(weights, np.full((2, 3), 99), total=20)
    assert counts.tolist() == [[10, 6, 4], [10, 10, 0]]
