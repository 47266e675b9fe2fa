import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rdc_jax.methods.optimiser import dampened_sgd, make_optimiser, make_schedule
from rdc_jax.pretrain.options import OptimiserOptions

SGD = OptimiserOptions(
    name="sgd",
    learning_rate=0.1,
    schedule="constant",
    warmup_steps=0,
    momentum=0.9,
    weight_decay=0.0,
)
PARAMS = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
GRADS = {"kernel": jnp.full((2, 2), 0.5), "bias": jnp.full(2, 0.5)}


def _update(options, steps=1):
    optimiser = make_optimiser(options, make_schedule(options, 10))
    params, state = PARAMS, optimiser.init(PARAMS)
    for _ in range(steps):
        updates, state = optimiser.update(GRADS, state, params)
        params = optax.apply_updates(params, updates)
    return params


def test_the_cosine_ends_at_zero_after_the_rise():
    options = dataclasses.replace(SGD, schedule="cosine", warmup_steps=4)
    rates = [float(make_schedule(options, 24)(step)) for step in range(25)]
    np.testing.assert_allclose(rates[:5], [0.02, 0.04, 0.06, 0.08, 0.1], rtol=1e-6)
    assert rates[14] == pytest.approx(0.05)
    assert rates[24] == pytest.approx(0, abs=1e-9)


def test_adam_begins_with_steps_of_the_learning_rate():
    params = _update(dataclasses.replace(SGD, name="adam", learning_rate=1e-3))
    np.testing.assert_allclose(params["kernel"], 1 - 1e-3, rtol=1e-5)


def test_sgd_looks_ahead_along_its_momentum():
    params = _update(SGD, steps=2)
    # Nesterov: g + .9 m with m = g, then with m = 1.9 g.
    moved = 0.1 * 0.5 * ((1 + 0.9) + (1 + 0.9 * 1.9))
    np.testing.assert_allclose(params["bias"], 1 - moved, rtol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_weight_decay_spares_all_but_kernels(name):
    plain = _update(dataclasses.replace(SGD, name=name))
    decayed = _update(dataclasses.replace(SGD, name=name, weight_decay=10.0))
    np.testing.assert_array_equal(plain["bias"], decayed["bias"])
    # Adam divides the decay's pull away on the first step; on later ones it shows.
    longer = _update(dataclasses.replace(SGD, name=name, weight_decay=10.0), steps=3)
    assert not np.allclose(
        _update(dataclasses.replace(SGD, name=name), 3)["kernel"], longer["kernel"]
    )


@pytest.mark.parametrize(
    "options",
    [
        {"momentum": 0.9, "dampening": 0.9, "weight_decay": 1e-3},
        {"momentum": 0.8, "dampening": 0.3, "weight_decay": 0.0},
        {"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.1},
    ],
)
def test_five_dampened_steps_are_torch_s(options):
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    rng = np.random.default_rng(0)
    start = {"kernel": rng.normal(size=(3, 4)), "bias": rng.normal(size=4)}
    theirs = {n: torch.nn.Parameter(torch.from_numpy(x)) for n, x in start.items()}
    sgd = torch.optim.SGD(theirs.values(), lr=0.1, **options)
    with jax.enable_x64(True):
        ours = jax.tree.map(jnp.asarray, start)
        optimiser = dampened_sgd(0.1, **options)
        state = optimiser.init(ours)
        for _ in range(5):
            grads = {name: rng.normal(size=x.shape) for name, x in start.items()}
            for name, parameter in theirs.items():
                parameter.grad = torch.from_numpy(grads[name])
            sgd.step()
            updates, state = optimiser.update(grads, state, ours)
            ours = optax.apply_updates(ours, updates)
            for name, parameter in theirs.items():
                np.testing.assert_allclose(
                    ours[name], parameter.detach().numpy(), rtol=1e-12
                )


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_the_backbone_may_move_at_a_multiple_of_the_rate(name):
    params = {"backbone": PARAMS, "head": PARAMS}
    moved = []
    for multiple in (1.0, 0.1):
        options = dataclasses.replace(SGD, name=name, backbone=multiple)
        optimiser = make_optimiser(options, make_schedule(options, 10))
        grads = {"backbone": GRADS, "head": GRADS}
        updates, _ = optimiser.update(grads, optimiser.init(params), params)
        moved.append(updates)
    plain, slower = moved
    for leaf in PARAMS:
        np.testing.assert_allclose(
            slower["backbone"][leaf], 0.1 * plain["backbone"][leaf], rtol=1e-6
        )
        np.testing.assert_array_equal(slower["head"][leaf], plain["head"][leaf])


def test_a_backbone_at_rate_zero_stays_and_has_no_state():
    params = {"backbone": PARAMS, "head": PARAMS}
    options = dataclasses.replace(SGD, name="adam", backbone=0.0)
    optimiser = make_optimiser(options, make_schedule(options, 10))
    state = optimiser.init(params)
    updates, _ = optimiser.update({"backbone": GRADS, "head": GRADS}, state, params)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(updates["backbone"]))
    assert all(np.any(leaf) for leaf in jax.tree.leaves(updates["head"]))
    one = make_optimiser(options, make_schedule(options, 10)).init({"head": PARAMS})
    sizes = [sum(map(np.size, jax.tree.leaves(x))) for x in (state, one)]
    assert sizes[0] == sizes[1]
