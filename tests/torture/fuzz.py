"""How cases are drawn: many or few, always the same ones for a seed.

A profile of Hypothesis that keeps failing cases has them tried first.
"""

import functools

import hypothesis
from hypothesis import strategies as st
from torture import effort

from rdc_jax.runtime.errors import UserError


def fuzz(*args, **kwargs):
    """Like ``hypothesis.given``, with as many cases as were asked for, all counted."""

    def decorate(test):
        @hypothesis.seed(effort.SEED)
        @hypothesis.settings(
            max_examples=effort.CASES,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(*args, **kwargs)
        @functools.wraps(test)
        def counted(*given, **named):
            effort.tally["fuzz cases"] += 1
            return test(*given, **named)

        return counted

    return decorate


def answer_or_line(call, *args):
    """What a call gives; None if it refuses in one line that can be printed."""
    try:
        return call(*args)
    except UserError as error:
        message = str(error)
    assert "\n" not in message and message.encode()
    return None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def edited(draw, data):
    """Bytes with some of them overwritten, cut out or repeated."""
    data = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        start = draw(st.integers(0, len(data) - 1))
        end = min(len(data), start + draw(st.integers(1, 16)))
        how = draw(st.sampled_from(("write", "cut", "repeat")))
        if how == "write":
            data[start:end] = draw(
                st.binary(min_size=end - start, max_size=end - start)
            )
        elif how == "cut":
            del data[start:end]
        else:
            data[end:end] = data[start:end]
    return bytes(data)
