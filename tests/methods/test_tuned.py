"""The systems that tune on each task, against PyTorch and by what they promise."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

from rdc_jax.data import transforms
from rdc_jax.methods import Task, get_method
from rdc_jax.methods import conft as conft_module
from rdc_jax.methods.lmm_pqs import large_margin, triplets
from rdc_jax.models.model import wrap
from rdc_jax.runtime.errors import UserError

WAY, SHOT, QUERY, SOURCE = 3, 3, 2, 6
NETWORK = tiny.TinyNet()


@pytest.fixture(scope="module")
def model():
    shape = jnp.zeros((1, tiny.SIZE, tiny.SIZE, 3))
    start = jax.jit(NETWORK.init)(jax.random.key(0), shape)
    # Running statistics that are not those of any batch, as a checkpoint's.
    stats = {"norm": {"mean": jnp.full(8, 0.05), "var": jnp.full(8, 0.4)}}
    return wrap(NETWORK, {"params": start["params"], "batch_stats": stats})


def make_task(shot=SHOT, seed=0):
    rng = np.random.default_rng(seed)
    labels_n = np.r_[np.repeat(np.arange(WAY), shot), np.tile(np.arange(WAY), QUERY)]
    colour_c = rng.integers(60, 190, (WAY, 1, 1, 3))
    noise = rng.integers(-60, 60, (len(labels_n), 18, 18, 3))
    images = (colour_c[labels_n] + noise).clip(0, 255).astype(np.uint8)
    source = rng.integers(0, 256, (SOURCE, 18, 18, 3), dtype=np.uint8)
    arrays = map(jnp.asarray, (images[: -WAY * QUERY], labels_n[: -WAY * QUERY]))
    return Task(
        *arrays,
        query=jnp.asarray(images[-WAY * QUERY :]),
        num_classes=WAY,
        key=jax.random.key(3),
        distractors=(jnp.asarray(source), jnp.asarray(rng.integers(0, 4, SOURCE))),
        num_source_classes=4,
    )


def make(name, **changes):
    text = ";".join(f"{key}={value}" for key, value in changes.items())
    return get_method(f"{name}({text})" if text else name, image_size=tiny.SIZE)


def train(method, model, task, steps=2):
    """States before the first step and after each one, with the keys of the steps."""
    keys = [jax.random.fold_in(task.key, number) for number in range(steps)]
    states = [jitted(method, "init")(jax.random.key(0), model, task)]
    for key in keys:
        states.append(jitted(method, "step")(states[-1], task, key))
    return states, keys


@functools.cache
def jitted(method, name):
    return jax.jit(getattr(method, name))


def twin(model):
    """The network in torch."""
    torch_finetune = pytest.importorskip("methods.torch_finetune")
    variables = {kind: tree["backbone"] for kind, tree in model.variables.items()}
    return torch_finetune.TinyNet(variables)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="needs the extra [torch]")


@pytest.fixture
def theirs():
    pytest.importorskip("torch", reason="needs the extra [torch]")
    from methods import torch_tuned

    return torch_tuned


def assert_same_network(state, net, atol=2e-5):
    """Weights and running statistics."""
    params = state.params["network"]["backbone"]
    stats = state.model.variables["batch_stats"]["backbone"]["norm"]
    for mine, other in (
        (params["conv"]["kernel"], net.conv.weight.permute(2, 3, 1, 0)),
        (params["norm"]["scale"], net.norm.weight),
        (params["norm"]["bias"], net.norm.bias),
        (params["dense"]["kernel"], net.dense.weight.T),
        (params["dense"]["bias"], net.dense.bias),
        (stats["mean"], net.norm.running_mean),
        (stats["var"], net.norm.running_var),
    ):
        np.testing.assert_allclose(mine, other.detach().numpy(), atol=atol)


@pytest.mark.parametrize("name", ["finetune_guo", "finetune_ata"])
def test_two_epochs_of_fine_tuning_are_torch_s(model, torch, theirs, name):
    task, method = make_task(), make(name)
    states, keys = train(method, model, task)
    net = twin(model)
    layer = theirs.linear(jax.tree.map(np.asarray, states[0].params["head"]))
    dampened = {"momentum": 0.9, "dampening": 0.9, "weight_decay": 1e-3}
    if name == "finetune_guo":
        optimisers = [
            torch.optim.SGD(net.parameters(), lr=0.01),
            torch.optim.SGD(layer.parameters(), lr=0.01, **dampened),
        ]
    else:
        both = [*net.parameters(), *layer.parameters()]
        optimisers = [torch.optim.SGD(both, lr=0.01, **dampened)]
    epochs = []
    for key in keys:
        order_key, sample_key = jax.random.split(key)
        images, labels = map(
            np.array, jitted(method, "samples")(sample_key, states[0], task)
        )
        order = np.asarray(jax.random.permutation(order_key, len(images)))
        labels = torch.from_numpy(labels).long()
        epochs.append((theirs.tensor(images), labels, order))
    theirs.classify_epochs(net, layer, optimisers, epochs)
    assert_same_network(states[-1], net)
    head = states[-1].params["head"]
    np.testing.assert_allclose(head["kernel"], layer.weight.detach().T, atol=2e-5)
    np.testing.assert_allclose(head["bias"], layer.bias.detach(), atol=2e-5)
    queries = np.asarray(transforms.test_batch(task.query, tiny.SIZE))
    with torch.no_grad():
        expected = -layer(net.eval()(theirs.tensor(queries)))
    np.testing.assert_allclose(
        jitted(method, "classify")(states[-1], task), expected.numpy(), atol=1e-4
    )


def test_first_steps_of_lmm_pqs_are_torch_s(model, torch, theirs):
    task, method = make_task(), make("lmm_pqs", pseudo=18)
    states, keys = train(method, model, task, steps=3)
    net = twin(model).train()
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    labels = torch.from_numpy(np.array(task.support_labels)).long()
    support = transforms.test_batch(task.support, tiny.SIZE)
    for key in keys:
        drawn = np.asarray(
            jax.jit(transforms.pseudo_samples, static_argnums=2)(key, support, 2)
        )
        pseudo = theirs.tensor(drawn.reshape(-1, *support.shape[1:]))
        loss = theirs.lmm_pqs_loss(
            *(net, theirs.tensor(np.asarray(support)), labels),
            *(pseudo, labels.repeat_interleave(2), WAY),
        )
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert_same_network(states[-1], net, atol=1e-4)
    with torch.no_grad():  # Still by the batch: supports and queries by themselves.
        means = theirs.class_means(net(theirs.tensor(np.asarray(support))), labels, WAY)
        queries = np.asarray(transforms.test_batch(task.query, tiny.SIZE))
        feat = net(theirs.tensor(queries))
        cosine = torch.cosine_similarity(feat[:, None], means[None], dim=2)
    np.testing.assert_allclose(
        -jitted(method, "classify")(states[-1], task), cosine.numpy(), atol=1e-3
    )


@pytest.mark.parametrize("name", ["conft", "mt_conft"])
def test_first_steps_of_conft_are_torch_s(model, torch, theirs, name):
    task, method = make_task(), make(name, distractors=SOURCE)
    states, keys = train(method, model, task)
    net = twin(model).train()
    parameters = [*net.parameters()]
    if name == "mt_conft":
        head = jax.tree.map(np.asarray, states[0].params["head"])
        layer = theirs.cosine_head(head)
        parameters += [*layer.parameters()]
    adam = torch.optim.Adam(parameters, lr=1e-3)
    source = np.asarray(transforms.test_batch(task.distractors[0], tiny.SIZE))
    source_labels = torch.from_numpy(np.array(task.distractors[1])).long()
    for key in keys:
        pair_key, view_key = jax.random.split(key)
        rows = conft_module.pairs(pair_key, task.support_labels, WAY)
        images = transforms.train_batch(
            jax.random.split(view_key, len(rows)),
            task.support[rows],
            tiny.SIZE,
            scale=(0.2, 1.0),
        )
        far = net(theirs.tensor(source))
        near = net(theirs.tensor(np.asarray(images)))
        labels = np.asarray(task.support_labels)[rows]
        loss = theirs.conft_loss(far, near, labels, method.temperature)
        if name == "mt_conft":
            loss = loss + theirs.cosine_loss(layer, far, source_labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert_same_network(states[-1], net, atol=1e-4)
    if name == "mt_conft":
        values = layer.parametrizations.weight
        head = states[-1].params["head"]
        gain = values.original0[:, 0].detach().numpy()
        np.testing.assert_allclose(head["gain"], gain, atol=1e-4)


def test_pairs_are_of_one_class_and_drop_the_odd_one():
    labels_s = jnp.asarray([0, 1, 0, 1, 0, 1, 0, 1, 0, 1])  # In any order.
    drawn = [conft_module.pairs(jax.random.key(i), labels_s, 2) for i in range(20)]
    for rows in map(np.asarray, drawn):
        assert len(rows) == 8 == len({*rows.tolist()})
        assert (labels_s[rows[::2]] == labels_s[rows[1::2]]).all()
    assert len({tuple(rows.tolist()) for rows in drawn}) > 10
    assert {*range(10)} - {*np.concatenate(drawn).tolist()} == set()
    one_shot = conft_module.pairs(jax.random.key(0), jnp.asarray([1, 0]), 2)
    assert one_shot.tolist() == [1, 1, 0, 0]


def test_both_kinds_of_negatives_have_the_same_weight():
    labels_l = np.repeat(np.arange(5), 4)  # 5-way 5-shot, 128 distractors.
    other_ll = labels_l[:, None] != labels_l[None, :]
    alike = jnp.ones((20, 20)), jnp.asarray(other_ll), jnp.ones((20, 128))
    others_l, distractors_l = conft_module.negatives(*alike)
    np.testing.assert_allclose(others_l, distractors_l, rtol=1e-6)
    assert float(others_l[0]) == pytest.approx(28.4, abs=0.05)


def test_counts_are_those_of_the_authors(model):
    assert make("lmm_pqs").versions(25, 5) == 4
    assert make("lmm_pqs").versions(5, 5) == 40
    assert make("lmm_pqs").versions(100, 5) == 2
    ata = make("finetune_ata")
    state = jitted(ata, "init")(jax.random.key(0), model, make_task())
    sizes = {}
    for shot in (1, 5):
        task = make_task(shot)
        images = jnp.concatenate([task.support] * 2)[: 5 * shot]
        full = task.replace(support=images, support_labels=jnp.zeros(5 * shot, int))
        drawn = jax.eval_shape(ata.samples, task.key, state, full)
        sizes[shot] = drawn[0].shape[0]
    assert sizes == {1: 80, 5: 100}


def test_losses_of_perfect_features():
    feat_sd, labels_s = 10 * jnp.eye(3), jnp.arange(3)
    assert float(triplets(feat_sd, feat_sd, labels_s, 1.0)) == 0
    gradient = jax.grad(lambda x: triplets(x, x, labels_s, 30.0))(feat_sd)
    assert np.isfinite(gradient).all()  # A single support is its own prototype.
    logit_mc = large_margin(feat_sd, feat_sd, labels_s, 30.0, 0.35)
    np.testing.assert_allclose(logit_mc, 30 * 0.65 * np.eye(3), atol=1e-4)


@pytest.mark.parametrize("name", ["finetune_guo", "da", "conft"])
def test_an_inductive_system_s_answer_is_that_of_each_query_alone(model, name):
    method, task = make(name), make_task(1)
    other = task.replace(query=task.query.at[1:].set(255 - task.query[1:]))
    states = [train(method, model, each, 1)[0][-1] for each in (task, other)]
    for mine, theirs in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    distances = jitted(method, "distances")
    got, expected = distances(states[0], other), distances(states[0], task)
    np.testing.assert_allclose(got[0], expected[0], atol=1e-5)
    assert not np.allclose(got[1:], expected[1:], atol=1e-3)


@pytest.mark.parametrize("answer", ["rdc", "npc_l2"])
def test_any_method_on_features_may_answer(model, answer):
    params = {"k": 3, "k2": 2, "dim": 4} if answer == "rdc" else {}
    method, task = make("finetune_guo", answer=answer, **params), make_task()
    state = jitted(make("finetune_guo"), "init")(jax.random.key(0), model, task)
    feat_nd, s = jitted(method, "features")(state, task), WAY * SHOT
    on_features = task.replace(support=feat_nd[:s], query=feat_nd[s:])
    text = ";".join(f"{key}={value}" for key, value in params.items())
    expected = jax.jit(get_method(f"{answer}({text})" if text else answer))(on_features)
    got = jitted(method, "distances")(state, task)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    own = jitted(make("finetune_guo"), "distances")(state, task)
    assert not np.allclose(got, own, atol=1e-3)


def test_who_answers_decides_what_is_transductive():
    assert not make("conft").answering.transductive
    assert make("conft", answer="rdc").answering.transductive
    with pytest.raises(UserError, match="answer=rdc_ft: choose a method on features"):
        make("conft", answer="rdc_ft")
    with pytest.raises(UserError, match="unknown method 'rcd'"):
        make("conft", answer="rcd")
    with pytest.raises(UserError, match="k is 20, but a task of 9 supports"):
        make("conft", answer="rdc", k=20).check(make_task())


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("finetune_guo", {"epochs": 0}, "finetune_guo: epochs is 0"),
        ("conft", {"temperature": -1.0}, "conft: temperature is -1"),
        ("da", {"loop": "fast"}, "choose from auto, python, compiled"),
    ],
)
def test_mistakes_name_the_parameter(name, changes, message):
    with pytest.raises(UserError, match=message):
        make(name, **changes)


def test_conft_wants_as_many_supports_of_each_class():
    task = make_task()
    fewer = task.replace(
        support=task.support[1:], support_labels=task.support_labels[1:]
    )
    with pytest.raises(UserError, match="8 supports of 3 classes"):
        make("conft").check(fewer)


@pytest.mark.parametrize("name", ["da", "mt_conft"])
def test_steps_over_tasks_lower_for_accelerators(model, name):
    method, task = make(name), make_task(1)
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), task)

    def one_step(model, task):
        state = method.init(task.key, model, task)
        state = method.step(state, task, task.key)
        return method.distances(state, task)

    traced = jax.jit(jax.vmap(one_step, (None, 0))).trace(model, stacked)
    for platform in ("cuda", "tpu"):
        assert traced.lower(lowering_platforms=(platform,)).as_text()
