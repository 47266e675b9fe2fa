"""Each transductive method, against plain NumPy written from its description."""

import dataclasses

import jax
import numpy as np
import pytest
from oracles import transductive as oracles

from rdc_jax.methods import Task, get_method
from rdc_jax.runtime.errors import UserError

pytestmark = pytest.mark.usefixtures("compiled_quickly")

# With few turns, so that single precision has no time to wander.
CASES = [
    "npc_prepared",
    "soft_kmeans(steps=4)",
    "bd_cspn",
    "label_propagation(k=4)",
    "label_propagation(k=3;alpha=0.5;power=1.0)",
    "laplacian_shot(steps=5)",
    "laplacian_shot(rectify=True;steps=5;knn=4)",
    "paddle(steps=5;temperature=4.0)",
    "tim(steps=4)",
    "pt_map(steps=3;scalings=4)",
    "proto_lp(steps=3;scalings=4)",
    "proto_lp(steps=2;scalings=4;gamma=0.3)",
    "logistic(steps=12)",
    "ldp_tr(take=2;rounds=3;steps=12)",
    "ldp_tr(take=3;rounds=2;steps=12;prototypes=False)",
    "rdc_plus(k=4)",
    "rdc_plus(k=5;alpha=0.5;turns=2;prior=1.0;sharpen=1.0;steps=9;join=1.0;evened=False)",
    "opta(passes=2;scalings=4;steps=12)",
]
LABELS = [0, 1, 2, 0, 2]


@pytest.fixture(scope="module")
def rows():
    """Prepared features of a task whose classes overlap: unit rows of mean zero."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((3, 5))
    labels = [*LABELS, *rng.integers(0, 3, 9)]
    x = centres[labels] + 0.8 * rng.standard_normal((len(labels), 5))
    x -= x.mean(axis=0)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def answer(method, rows):
    rows = rows.astype(np.float32)
    s = len(LABELS)
    method = dataclasses.replace(method, prepare=())
    task = Task(rows[:s], np.array(LABELS), rows[s:], num_classes=3)
    return np.asarray(jax.jit(method)(task))


@pytest.mark.parametrize("text", CASES)
def test_a_method_equals_its_description(text, rows):
    method = get_method(text)
    fields = {f.name: getattr(method, f.name) for f in dataclasses.fields(method)}
    unused = {"tim": ("solver", "rate")}.get(method.name, ())
    for name in ("prepare", "views", "layers", *unused):
        del fields[name]
    if method.name == "ldp_tr":
        fields["of_means"] = fields.pop("prototypes")
    oracle = getattr(oracles, "tim_adm" if method.name == "tim" else method.name)
    s = len(LABELS)
    want = oracle(rows[:s], LABELS, rows[s:], 3, **fields)
    np.testing.assert_allclose(answer(method, rows), want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    ("text", "weights", "order"),
    [
        ("tim(solver=gradient;steps=4;rate=0.02)", (0.1, 1.0, 0.1), 1.0),
        ("alpha_tim(steps=4;rate=0.02)", (1.0, 1.0, 1.0), 2.0),
        ("alpha_tim(steps=3;rate=0.02;alpha=7.0)", (1.0, 1.0, 1.0), 7.0),
    ],
)
def test_descent_equals_adam_on_central_differences(text, weights, order, rows):
    method, s = get_method(text), len(LABELS)
    want = oracles.by_adam(
        *(rows[:s], LABELS, rows[s:], 3),
        temperature=method.temperature,
        weights=weights,
        order=order,
        steps=method.steps,
        rate=method.rate,
    )
    np.testing.assert_allclose(answer(method, rows), want, atol=2e-3)


def test_the_linear_head_is_the_one_that_scikit_learn_finds(rows):
    """Where the intercept is penalised too: it stands in the rows as a constant."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    s = len(LABELS)
    constant = np.append(rows, np.ones((len(rows), 1)), axis=1)
    head = linear_model.LogisticRegression(C=5.0, fit_intercept=False, tol=1e-8)
    head.fit(constant[:s], LABELS)
    want = -head.decision_function(constant[s:])
    got = answer(get_method("logistic(steps=300;strength=5.0)"), rows)
    np.testing.assert_allclose(got, want, atol=1e-3)


def test_plans_of_methods_that_assume_balance_are_even(rows):
    plan = np.exp(-answer(get_method("pt_map(scalings=400)"), rows))
    np.testing.assert_allclose(plan.sum(axis=0), 3, atol=1e-3)
    np.testing.assert_allclose(plan.sum(axis=1), 1, atol=1e-3)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("paddle(steps=0)", "steps must be at least 1"),
        ("pt_map(temperature=-1.0)", "temperature must not be negative"),
        ("soft_kmeans(temperature=nan)", "temperature must not be negative"),
        ("label_propagation(alpha=1.0)", "alpha must be below 1"),
        ("tim(solver=newton)", "adm or gradient"),
    ],
)
def test_impossible_parameters_are_named(text, match):
    with pytest.raises(UserError, match=match):
        get_method(text)
