"""What every method with a head promises."""

import pytest

from rdc_jax import methods
from rdc_jax.methods.heads import HeadMethod
from rdc_jax.models import HEADS
from rdc_jax.runtime.errors import UserError

NAMES = [
    name for name in methods.names() if isinstance(methods.get_method(name), HeadMethod)
]


@pytest.mark.parametrize("name", NAMES)
def test_its_head_is_known_and_takes_what_the_method_is_given(name):
    method = methods.get_method(name)
    assert HEADS[method.head].inputs == method.inputs
    assert method.assumes_balance == ("assumes balance" in method.title)


@pytest.mark.parametrize("name", NAMES)
def test_it_needs_a_model(name):
    with pytest.raises(UserError, match=r"needs a model with a \w+ head"):
        methods.jitted(name)


@pytest.mark.parametrize(
    ("text", "transductive"),
    [
        ("gnn", True),
        ("gnn(layout=one)", True),
        ("gnn(layout=one;moments=support)", False),
        ("gnn(layout=one;moments=running)", False),
        ("gnn(moments=running)", True),  # The layout is that of training: unknown.
        ("gnn_balanced", True),
    ],
)
def test_transductive_is_what_the_options_make_it(text, transductive):
    assert methods.get_method(text).transductive == transductive
