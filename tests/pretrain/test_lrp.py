"""Explanation-guided training of the graph network."""

import compiling
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from pretrain.meta import (
    KEY,
    LABELS,
    assert_close,
    assert_equal,
    batch_of,
    init,
    loss_of,
    lowered,
    make,
    steps,
)
from tiny import TinyNet

from rdc_jax.models import BACKBONES
from rdc_jax.models.heads import relevance
from rdc_jax.models.model import Model, Spec
from rdc_jax.pretrain.objectives import Objective
from rdc_jax.pretrain.objectives.episodic import Episodic
from rdc_jax.pretrain.objectives.lrp import ExplanationGuided
from rdc_jax.runtime.errors import UserError

HEAD = (("edge_width", 8), ("growth", 4), ("way", 2), ("width", 6))
GNN = Episodic(Spec("tiny", head="gnn", head_options=HEAD), 2, 1, "gnn")
GUIDED = ExplanationGuided(GNN, weight=0.5)


@pytest.fixture(autouse=True)
def tiny_backbone(monkeypatch):
    monkeypatch.setitem(BACKBONES, "tiny", TinyNet)


def blocks(seed=0, nodes=4, classes=3, widths=(5, 2)):
    """What the three blocks of a small graph network took, kernels, and relevance."""
    rng = np.random.default_rng(seed)
    first, growth = widths
    x = rng.normal(size=(2, nodes, first + 2 * growth))
    taken, kernels = [], []
    for i in range(3):
        width = first + i * growth
        edge = rng.uniform(size=(2, nodes, nodes))
        edge /= edge.sum(-1, keepdims=True)
        taken.append((x[..., :width], edge))
        out = growth if i < 2 else classes
        kernels.append(rng.normal(size=(2 * width, out)))
    return taken, kernels, rng.normal(size=(2, nodes, classes))


def by_hand(taken, kernels, start, epsilon, whole):
    """Relevance of each node's features, one sum and one term at a time."""

    def share(terms, amount):
        total = sum(terms)
        return [
            t * amount / (total + (epsilon if total >= 0 else -epsilon)) for t in terms
        ]

    def through(x, edge, kernel, given):
        nodes, width = x.shape
        gathered = np.concatenate([x, edge @ x], -1)
        at_gathered, at_x = np.zeros_like(gathered), np.zeros_like(x)
        for a in range(nodes):
            for k in range(kernel.shape[1]):
                terms = [gathered[a, j] * kernel[j, k] for j in range(2 * width)]
                at_gathered[a] += share(terms, given[a, k])
        for a in range(nodes):
            for j in range(width):
                at_x[a, j] += share([x[a, j]], at_gathered[a, j])[0]
                terms = [edge[a, b] * x[b, j] for b in range(nodes)]
                at_x[:, j] += share(terms, at_gathered[a, width + j])
        return at_x

    result = []
    for graph in range(len(start)):
        parts = [(x[graph], edge[graph]) for x, edge in taken]
        d0, d1, d2 = (x.shape[1] for x, _ in parts)
        r2 = through(*parts[2], kernels[2], start[graph])
        r1 = through(*parts[1], kernels[1], r2[:, d1:d2])
        into_first = r1[:, d0:d1] + (r2[:, d0:d1] if whole else 0)
        r0 = through(*parts[0], kernels[0], into_first)
        result.append(r0 + r1[:, :d0] + r2[:, :d0])
    return np.stack(result)


@pytest.mark.parametrize("whole", [True, False])
def test_relevance_is_shared_out_by_the_terms_of_each_sum(whole):
    taken, kernels, start = blocks()
    want = by_hand(taken, kernels, start, 0.3, whole)
    got = relevance.of_nodes(
        *jax.tree.map(jnp.asarray, (taken, kernels, start)), epsilon=0.3, whole=whole
    )
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_relevance_is_kept_with_the_path_that_the_code_drops():
    taken, kernels, start = blocks(seed=1)
    kept, lost = (
        by_hand(taken, kernels, start, 1e-9, whole=path).sum((1, 2))
        for path in (True, False)
    )
    np.testing.assert_allclose(kept, start.sum((1, 2)), rtol=1e-5)
    assert not np.allclose(lost, start.sum((1, 2)), rtol=1e-2)
    got = relevance.of_nodes(
        *jax.tree.map(jnp.asarray, (taken, kernels, start)), epsilon=1e-7, whole=True
    )
    np.testing.assert_allclose(got.sum((1, 2)), start.sum((1, 2)), rtol=1e-2)


def test_a_class_at_chance_has_hardly_any_relevance():
    logits = jnp.array([[[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]])
    got = relevance.of_logits(logits)[0]
    np.testing.assert_allclose(got[0], 0, atol=0.02)
    share = np.exp(9) / (np.exp(9) + 2)
    assert got[1, 0] == pytest.approx(
        np.log(2 * (share + 0.01) / (1.01 - share)), rel=1e-4
    )


def torch_losses(params, features):
    """Both losses by torch, with weights of the features by hand; and gradients."""
    torch = pytest.importorskip("torch")
    from models.torch_heads import SLOPE, Params, edges

    nn, p = torch.nn.functional, Params(params)
    labels = torch.tensor(LABELS.astype(np.int64))
    rows = torch.tensor(np.asarray(features, np.float64))
    z = p.norm(p.linear(rows, "project"), "project_norm")

    def spread(z):
        """Graphs of both supports and one query, ``z[q]`` of each."""
        one_hot = torch.cat([nn.one_hot(labels[:2], 2), torch.zeros(1, 2)])
        x = torch.stack([torch.cat([zq, one_hot], -1) for zq in z])
        taken = []
        for i in range(3):
            edge = edges(p, x, f"edges_{i}", 0.0)
            taken.append((x.detach().numpy(), edge.detach().numpy()))
            y = p.linear(torch.cat([x, edge @ x], -1), f"convs_{i}")
            if i < 2:
                x = torch.cat([x, nn.leaky_relu(p.norm(y, f"norms_{i}"), SLOPE)], -1)
        return y, taken

    z = torch.stack([torch.cat([z[:2], z[i : i + 1]]) for i in range(2, 8)])
    logits, taken = spread(z)
    share = torch.softmax(logits, -1).detach().numpy()
    start = np.log((share + 0.01) / (1.01 - share))
    kernels = [p[f"convs_{i}.kernel"].detach().numpy() for i in range(3)]
    found = by_hand(taken, kernels, start, 0.01, whole=False)[..., :6]
    weight = 1 + found / np.abs(found).max(-1, keepdims=True)
    again, _ = spread(z * torch.tensor(weight))
    losses = [nn.cross_entropy(y[:, 2], labels[2:]) for y in (logits, again)]
    (losses[0] + 0.5 * losses[1]).backward()
    grads = {name: value.grad.numpy() for name, value in p.named_parameters()}
    return [float(loss.detach()) for loss in losses], grads


def test_losses_and_gradients_are_those_of_plain_torch():
    objective, batch = GUIDED, batch_of()
    variables = init(objective)

    def of_head(head):
        params = {**variables["params"], "head": head}
        return objective.loss({**variables, "params": params}, batch, KEY)

    head = variables["params"]["head"]
    with compiling.fully():
        (loss, aux), grads = jax.jit(jax.value_and_grad(of_head, has_aux=True))(head)
    features, _, _ = Model(GNN.spec, variables).apply(batch.images, train=True)
    (plain, explained), want = torch_losses(head, features)
    assert loss == pytest.approx(plain + 0.5 * explained, rel=1e-4)
    assert aux.metrics["explained_loss"] == pytest.approx(explained, rel=1e-4)
    assert abs(explained - plain) > 1e-3
    flat = {
        "__".join(key.key for key in path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(grads)
    }
    assert flat.keys() == want.keys()
    assert_close(flat, want, rtol=5e-3, atol=2e-4)


def test_the_features_weigh_in_training_alone():
    batch, variables = batch_of(), init(GUIDED)
    want, want_aux = loss_of(GNN, variables, batch, train=False)
    loss, aux = loss_of(GUIDED, variables, batch, train=False)
    assert loss == want
    assert_equal(aux.batch_stats, want_aux.batch_stats)
    _, training = loss_of(GUIDED, variables, batch)
    _, plain = loss_of(GNN, variables, batch)
    assert_close(training.batch_stats, plain.batch_stats, atol=1e-6)
    assert isinstance(GUIDED, Objective)
    assert set(training.metrics) == set(aux.metrics) == set(GUIDED.metrics)


def test_the_second_loss_weighs_by_the_number_of_shots():
    for shot, weight in ((1, 0.5), (5, 1.0), (3, 1.0)):
        objective = make("gnn+lrp", arch="tiny", **{"episode.shot": shot})
        assert objective.weight == weight
    assert make("gnn+lrp(weight=0.2)", arch="tiny").weight == 0.2
    with pytest.raises(UserError, match="lrp explains a gnn, not protonet"):
        make("protonet+lrp", arch="tiny")


def test_a_step_is_finite_on_equal_images_and_lowers_for_every_accelerator():
    batch = batch_of()
    batch = batch._replace(images=jnp.zeros_like(batch.images))
    objective = ExplanationGuided(GNN)

    @jax.jit
    def grads(variables):
        return jax.grad(lambda v: objective.loss(v, batch, KEY)[0])(variables)["params"]

    leaves = jax.tree.leaves(grads(init(objective)))
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert lowered(objective, optax.adam(1e-3)) == {"cuda", "tpu"}


@pytest.mark.devices8
def test_eight_devices_do_as_one():
    one, several = (steps(GUIDED, 1, devices=n)[-1] for n in (1, 8))
    assert_close(one.variables, several.variables, atol=5e-5)
