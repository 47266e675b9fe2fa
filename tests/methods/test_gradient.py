"""Adaptation by gradient: the paper's algorithm, and each of its readings."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from methods.adapted import QUERY, SHOT, WAY, make_model, make_task

import rdc_jax
from rdc_jax.core.calibration import original_distances
from rdc_jax.data.transforms import test_batch as transformed
from rdc_jax.methods import Task, get_method
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.runtime.errors import UserError

PARAMS = rdc_jax.RDCParams(k=4, k2=3, dim=4)


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def task():
    return make_task()


def make(name="rdc_ft", *, params=PARAMS, **options):
    options = FinetuneOptions(**{"learning_rate": 1e-2, **options})
    return get_method(name, rdc=params, finetune=options, image_size=tiny.SIZE)


def train(method, model, task, steps=3):
    """States before the first step and after each one."""
    states = [jax.jit(method.init)(jax.random.key(0), model, task)]
    step = jax.jit(method.step)
    for number in range(steps):
        key = jax.random.fold_in(task.key, number)
        states.append(step(states[-1], task, key))
    return states


def network_of(model):
    """The network's variables, by collection."""
    return {kind: tree["backbone"] for kind, tree in model.variables.items()}


def same(one, other):
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


@pytest.mark.parametrize("batch_norm", ["batch", "running", "updated"])
def test_first_steps_equal_a_torch_reference(model, task, batch_norm):
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    from methods import torch_finetune

    method = make(batch_norm=batch_norm)
    ours = train(method, model, task)
    images = transformed(jnp.concatenate([task.support, task.query]), tiny.SIZE)
    inputs = torch.from_numpy(np.array(images).transpose(0, 3, 1, 2))
    theirs = torch_finetune.TinyNet(network_of(model)).train(batch_norm != "running")
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2)
    labels_s = np.asarray(task.support_labels)
    for before, after in itertools.pairwise(ours):
        loss = torch_finetune.loss_of(
            theirs(inputs), labels_s, WAY, PARAMS, alpha=0.5, tau=3.0
        )
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert loss_at(method, before, task) == pytest.approx(loss.item(), rel=1e-4)
        params = after.params["network"]
        for mine, other in (
            (params["conv"]["kernel"], theirs.conv.weight.permute(2, 3, 1, 0)),
            (params["norm"]["scale"], theirs.norm.weight),
            (params["dense"]["kernel"], theirs.dense.weight.T),
        ):
            np.testing.assert_allclose(mine, other.detach().numpy(), atol=2e-5)
    if batch_norm == "updated":
        running = network_of(ours[-1].model)["batch_stats"]["norm"]["mean"]
        np.testing.assert_allclose(running, theirs.norm.running_mean, atol=1e-5)


def loss_at(method, state, task):
    """The loss that the next step minimises."""
    images = transformed(jnp.concatenate([task.support, task.query]), tiny.SIZE)
    train = method.finetune.batch_norm != "running"
    feat_nd, out, _ = method.adapted(state).apply(images, train=train)
    targets = method.renewed(state.targets, feat_nd, task)
    return float(method.loss({}, targets, feat_nd, out, task))


@pytest.mark.parametrize("loss", ["rdc_ft", "rdc_ft_mse"])
def test_the_gradient_is_that_of_finite_differences(loss):
    with jax.enable_x64(True):
        method = make(loss, target="fixed")
        rng = np.random.default_rng(1)
        feat_nd = jnp.asarray(rng.normal(size=(WAY * (SHOT + QUERY), 6)))
        labels_s = jnp.repeat(jnp.arange(WAY), SHOT)
        task = Task(feat_nd[: WAY * SHOT], labels_s, feat_nd[WAY * SHOT :], WAY)
        start_nd = feat_nd + 0.1 * rng.normal(size=feat_nd.shape)
        _, kept = method.start(jax.random.key(0), start_nd, task)
        value = jax.jit(lambda feat_nd: method.loss({}, kept, feat_nd, {}, task))
        slope_nd = jax.grad(value)(feat_nd)
        for _ in range(5):
            way_nd = rng.normal(size=feat_nd.shape)
            numeric = (
                value(feat_nd + 1e-5 * way_nd) - value(feat_nd - 1e-5 * way_nd)
            ) / 2e-5
            assert float((slope_nd * way_nd).sum()) == pytest.approx(
                float(numeric), rel=1e-5
            )


def test_the_trained_distances_are_the_original_ones():
    feat_nd = jax.random.normal(jax.random.key(0), (12, 6))
    out = rdc_jax.rdc(feat_nd[:3], jnp.arange(3), feat_nd[3:], num_classes=3)
    # Not to the bit: they are two programs, which may round the last one differently.
    np.testing.assert_allclose(original_distances(feat_nd), out.original, rtol=1e-6)


def test_training_brings_the_loss_down(model, task):
    method = make(target="fixed")
    states = train(method, model, task, steps=8)
    first, last = (loss_at(method, s, task) for s in (states[0], states[-1]))
    assert last < 0.9 * first


def test_a_fixed_target_differs_from_the_second_step_on(model, task):
    moving, fixed = (
        train(make(target=target), model, task, 2) for target in ("each_step", "fixed")
    )
    for mine, other, equal in zip(moving[1:], fixed[1:], (True, False), strict=True):
        difference = jax.tree.map(
            lambda a, b: np.abs(a - b).max(),
            mine.params["network"],
            other.params["network"],
        )
        assert bool(max(jax.tree.leaves(difference)) < 1e-6) is equal


def test_batch_norm_s_three_readings(model, task):
    states = {
        bn: train(make(batch_norm=bn), model, task)
        for bn in ("batch", "running", "updated")
    }
    stats = {bn: network_of(run[-1].model)["batch_stats"] for bn, run in states.items()}
    assert same(stats["batch"], network_of(model)["batch_stats"])
    assert same(stats["running"], network_of(model)["batch_stats"])
    assert not same(stats["updated"], network_of(model)["batch_stats"])
    # While training, ``updated`` is ``batch``; they differ in what classifies.
    trained = (states[bn][-1].params["network"] for bn in ("batch", "updated"))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), *trained)
    answers = {
        bn: make(batch_norm=bn).classify(run[-1], task) for bn, run in states.items()
    }
    assert not np.allclose(answers["batch"], answers["updated"], atol=1e-3)
    assert not np.allclose(answers["batch"], answers["running"], atol=1e-3)


def test_only_the_named_layers_train(model, task):
    state = train(make(layers=("dense",)), model, task)[-1]
    assert set(state.params["network"]) == {"dense"}
    before = network_of(model)["params"]["dense"]
    assert not same(state.params["network"]["dense"], before)


def test_a_head_alone_is_softmax_regression_on_the_supports(model, task):
    options = {"steps": 60, "learning_rate": 0.5, "optimiser": "sgd"}
    head = make("finetune_linear", **options)
    state = train(head, model, task, head.steps)[-1]
    assert state.params["network"] == {}
    feat_nd = np.asarray(head.features(state, task))
    sklearn = pytest.importorskip("sklearn.linear_model")
    s = len(task.support)
    labels_s = np.asarray(task.support_labels)
    # Both separate the supports; the answers on the queries mostly agree.
    expected = sklearn.LogisticRegression(C=1e3, max_iter=5000).fit(
        feat_nd[:s], labels_s
    )
    answers_q = np.argmin(head.classify(state, task), axis=1)
    assert np.mean(answers_q == expected.predict(feat_nd[s:])) > 0.8


def test_the_labelled_baseline_sees_no_query(model, task):
    tuner = make("finetune", augment=True)
    other = task.replace(query=255 - task.query)
    states = [train(tuner, model, each)[-1] for each in (task, other)]
    assert same(states[0].params, states[1].params)
    assert not same(states[0].params["network"], network_of(model)["params"])


def test_unknown_layers_are_told(model, task):
    with pytest.raises(UserError, match=r"layers has 'block9': .* conv, dense, norm"):
        make(layers=("block9",)).init(jax.random.key(0), model, task)


def test_relative_steps_are_shares_of_the_weights(model, task):
    method = make(relative=True, learning_rate=0.02)
    first, second = train(method, model, task, 1)
    before, after = (s.params["network"]["conv"]["kernel"] for s in (first, second))
    moved = np.abs(after - before)
    size = np.sqrt(np.square(before).mean())
    # Adam's first step has length 1 wherever the gradient is not tiny.
    assert np.median(moved / size) == pytest.approx(0.02, rel=0.02)


def test_each_image_is_augmented_by_itself(model, task):
    """Of equal images, one view for all would leave nothing to learn from."""
    equal = task.replace(
        support=jnp.repeat(task.support[:1], WAY * SHOT, 0),
        query=jnp.repeat(task.support[:1], WAY * QUERY, 0),
    )
    moved = []
    for augmented in (False, True):
        first, second = train(make(augment=augmented), model, equal, 1)
        moved.append(not same(first.params, second.params))
    assert moved == [False, True]


def test_augmentation_is_a_function_of_the_task_s_key_and_the_step(model, task):
    run = functools.partial(train, make(augment=True), model)
    one, again = run(task), run(task)
    other = run(task.replace(key=jax.random.key(4)))
    assert same(one[-1].params, again[-1].params)
    assert not same(one[1].params, other[1].params)
    assert not same(one[1].params, train(make(), model, task)[1].params)


@pytest.mark.parametrize(
    "change", [{"sign": 1}, {"include_self": True}, {"alpha": 0.0}, {"tau": 1.0}]
)
def test_readings_of_the_loss_change_it(model, task, change):
    state = train(make(), model, task, 0)[0]
    plain, other = (loss_at(method, state, task) for method in (make(), make(**change)))
    assert plain != pytest.approx(other, rel=1e-3)


def test_without_the_subspace_the_target_differs(model, task):
    none = dataclasses.replace(PARAMS, subspace="none")
    state = train(make(), model, task, 0)[0]
    values = [loss_at(make(params=p), state, task) for p in (PARAMS, none)]
    assert values[0] != pytest.approx(values[1], rel=1e-3)


def test_bfloat16_computes_what_float32_does_roughly(model, task):
    exact, rough = (
        train(make(dtype=dtype), model, task, 1)[-1].params["network"]
        for dtype in ("float32", "bfloat16")
    )
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(rough))
    change = exact["dense"]["kernel"] - network_of(model)["params"]["dense"]["kernel"]
    other = rough["dense"]["kernel"] - network_of(model)["params"]["dense"]["kernel"]
    assert np.mean(np.sign(change) == np.sign(other)) > 0.8


def test_calibrated_distances_can_answer_in_place_of_prototypes(model, task):
    method = make("rdc_ft(answer=rdc)")
    state = train(method, model, task)[-1]
    features_nd = method.features(state, task)
    s = len(task.support_labels)
    want = rdc_jax.rdc(
        features_nd[:s], task.support_labels, features_nd[s:], WAY, params=PARAMS
    ).class_distances
    got = method.distances(state, task)
    np.testing.assert_allclose(got, want, atol=1e-5)
    assert not np.allclose(got, make().distances(state, task), atol=1e-3)


def test_queries_are_classified_whatever_their_order(model, task):
    order = np.random.default_rng(0).permutation(len(task.query))
    shuffled = task.replace(query=task.query[order])
    answers = []
    for each in (task, shuffled):
        state = train(make(), model, each)[-1]
        answers.append(make().classify(state, each))
    np.testing.assert_allclose(answers[0][order], answers[1], atol=1e-4)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("steps", 0, "finetune.steps is 0"),
        ("learning_rate", float("nan"), "finetune.learning_rate is nan"),
        ("optimiser", "lion", "choose from adam, sgd"),
        ("sign", 0, "choose from -1, 1"),
        ("batch_norm", "frozen", "choose from batch, running, updated"),
        ("record", (-1,), "finetune.record is -1"),
        ("tau", 0.0, "finetune.tau is 0"),
    ],
)
def test_mistakes_name_the_field(field, value, message):
    with pytest.raises(UserError, match=message):
        FinetuneOptions(**{field: value})
