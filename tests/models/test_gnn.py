"""The graph network against PyTorch, its layouts and its moments."""

import jax
import numpy as np
import pytest

from rdc_jax.models.heads.episode import make_episode
from rdc_jax.models.heads.gnn import GNN

WAY, D = 3, 7
SMALL = {"way": WAY, "width": 6, "growth": 4, "edge_width": 8}
LABELS = np.array([2, 0, 1, 1, 0, 2])
QUERY_LABELS = np.array([1, 0, 2, 2, 1, 0, 0, 1, 2])
S, Q = len(LABELS), len(QUERY_LABELS)


def rows(seed=0, n=S + Q):
    return np.random.default_rng(seed).standard_normal((n, D)).astype(np.float32)


def episode_of(x, **masks):
    return make_episode(x[:S], LABELS, x[S:], WAY, query_labels=QUERY_LABELS, **masks)


def variables_of(head):
    """Weights far from their first values: norms would otherwise be trivial."""
    variables = jax.jit(head.init)(jax.random.key(0), episode_of(rows()))
    leaves, tree = jax.tree.flatten(jax.tree.map(np.asarray, variables))
    rng = np.random.default_rng(1)
    moved = [np.asarray(x + 0.2 * rng.random(x.shape), np.float32) for x in leaves]
    return jax.device_put(jax.tree.unflatten(tree, moved))


def answer(head, variables, x, **options):
    apply = jax.jit(head.apply, static_argnames="train")
    return np.asarray(apply(variables, episode_of(x), **options))


def groups(layout, head, variables, x):
    """Which queries the head puts into one graph."""
    apply = jax.jit(head.apply, static_argnames="method")
    graphs = apply(variables, episode_of(x), method="graphs")
    m = graphs.valid.shape[1] - S
    slots = {int(slot): i for i, slot in enumerate(graphs.slot)}
    return [
        [slots[g * m + j] for j in range(m) if g * m + j in slots]
        for g in range(len(graphs.valid))
    ]


@pytest.fixture(params=["one", "shuffled", "balanced"])
def head(request):
    return GNN(**SMALL, layout=request.param)


def test_layouts_are_what_they_say(head):
    got = groups(head.layout, head, variables_of(head), rows())
    assert sorted(i for members in got for i in members) == list(range(Q))
    if head.layout == "one":
        assert all(len(members) == 1 for members in got)
        return
    assert [len(members) for members in got] == [WAY] * (Q // WAY)
    if head.layout == "balanced":
        for members in got:
            assert sorted(QUERY_LABELS[members]) == list(range(WAY))
        assert got[0] == [1, 0, 2]  # The first of each class, and so on.


def test_logits_loss_gradients_and_a_step_are_torchs(head):
    pytest.importorskip("torch", reason="needs the extra [torch]")
    import torch
    from models import torch_heads

    variables, x = variables_of(head), rows()
    members = groups(head.layout, head, variables, x)

    def oracle(p, x):
        labels = torch.tensor(LABELS)
        return torch_heads.gnn(p, x[:S], labels, x[S:], WAY, members, noise=0.3)

    torch_heads.assert_equal(head, variables, episode_of, x, QUERY_LABELS, oracle)


@pytest.mark.parametrize("moments", ["batch", "support", "running"])
def test_neither_the_order_of_queries_nor_of_supports_matters(head, moments):
    head = head.clone(moments=moments)
    variables, x = variables_of(head), rows()
    want = answer(head, variables, x)
    if head.layout != "balanced":  # Which goes by the order within a class.
        order = np.random.default_rng(2).permutation(Q)
        moved = np.concatenate([x[:S], x[S:][order]])
        np.testing.assert_allclose(
            answer(head, variables, moved), want[order], rtol=1e-3, atol=1e-4
        )
    swap = np.r_[[5, 4, 3, 2, 1, 0], S : S + Q]  # Within classes.
    assert (LABELS[swap[:S]] == LABELS).all()
    np.testing.assert_allclose(
        answer(head, variables, x[swap]), want, rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("moments", ["support", "running"])
def test_a_graph_of_its_own_and_own_moments_make_it_inductive(moments):
    head = GNN(**SMALL, layout="one", moments=moments)
    variables, x, other = variables_of(head), rows(), rows(5)
    other[: S + 1] = x[: S + 1]
    first = [answer(head, variables, each)[0] for each in (x, other)]
    np.testing.assert_allclose(*first, rtol=1e-3, atol=1e-4)


def test_moments_of_the_batch_make_queries_change_each_others_answers():
    head = GNN(**SMALL)
    variables, x, other = variables_of(head), rows(), rows(5)
    other[: S + 1] = x[: S + 1]
    first = [answer(head, variables, each)[0] for each in (x, other)]
    assert np.abs(first[0] - first[1]).max() > 0.01


def test_running_moments_follow_training_and_answer_at_test():
    head = GNN(**SMALL, moments="running")
    variables, x = variables_of(head), rows()
    by_batch, new = head.apply(
        variables, episode_of(x), train=True, mutable=["batch_stats"]
    )
    plain = head.clone(moments="batch")
    np.testing.assert_allclose(
        by_batch, answer(plain, variables, x), rtol=1e-4, atol=1e-5
    )
    z = x @ variables["params"]["project"]["kernel"]
    old = variables["batch_stats"]["project_norm"]
    got = new["batch_stats"]["project_norm"]
    np.testing.assert_allclose(
        got["mean"], 0.9 * old["mean"] + 0.1 * z.mean(0), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        got["var"], 0.9 * old["var"] + 0.1 * z.var(0, ddof=1), rtol=1e-4
    )
    assert not np.allclose(answer(head, variables, x), by_batch, atol=1e-2)
