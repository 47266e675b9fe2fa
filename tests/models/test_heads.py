"""Heads that take a task: what all promise, and three of them against PyTorch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models import HEADS
from rdc_jax.models.heads.episode import empty_episode, make_episode
from rdc_jax.models.heads.gnn import GNN
from rdc_jax.models.heads.matching import Matching
from rdc_jax.models.heads.norm import Counts, EpisodeNorm
from rdc_jax.models.heads.relation import Relation
from rdc_jax.models.heads.tpn import TPN
from rdc_jax.models.norm import BatchNorm
from rdc_jax.runtime.errors import UserError

WAY = 3
LABELS = np.array([2, 0, 1, 1, 0, 2])
QUERY_LABELS = np.array([1, 0, 2, 2, 1, 0, 0, 1, 2])
S, Q = len(LABELS), len(QUERY_LABELS)
SMALL = {"way": WAY, "width": 6, "growth": 4, "edge_width": 8}
ROW = {"features": (7,), "maps": (3, 3, 4)}
CASES = {
    "gnn": GNN(**SMALL),
    "gnn, shuffled": GNN(**SMALL, layout="shuffled"),
    "gnn, by supports": GNN(**SMALL, moments="support"),
    "tpn": TPN(k=4),
    "tpn, by batch": TPN(k=4, moments="batch"),
    "relation": Relation(),
    "matching": Matching(),
    "matching, published": Matching("published"),
    "matching, plain": Matching("none"),
}


def rows(row, seed=0):
    draw = np.random.default_rng(seed).standard_normal
    return np.abs(draw((S + Q, *row))).astype(np.float32)


def episode_of(x):
    return make_episode(x[:S], LABELS, x[S:], WAY, query_labels=QUERY_LABELS)


def variables_of(head, row=None):
    """Weights far from their first values: norms would otherwise be trivial."""
    episode = episode_of(rows(row or ROW[head.inputs]))
    variables = jax.jit(head.init)(jax.random.key(0), episode)
    leaves, tree = jax.tree.flatten(jax.tree.map(np.asarray, variables))
    rng = np.random.default_rng(1)
    moved = [np.asarray(x + 0.2 * rng.random(x.shape), np.float32) for x in leaves]
    return jax.device_put(jax.tree.unflatten(tree, moved))


@pytest.fixture(params=CASES)
def head(request):
    return CASES[request.param]


def test_order_and_padding_change_no_answer(head):
    variables, x = variables_of(head), rows(ROW[head.inputs])
    apply = jax.jit(head.apply)
    want = np.asarray(apply(variables, episode_of(x)))
    assert want.shape == (Q, WAY) and want.std() > 1e-3
    order = np.random.default_rng(2).permutation(Q)
    swap = np.r_[[5, 4, 3, 2, 1, 0], S + order]  # Supports within their classes.
    assert (LABELS[swap[:S]] == LABELS).all()
    close = {"rtol": 2e-3, "atol": 2e-4}
    got = apply(variables, episode_of(x[swap]))
    np.testing.assert_allclose(got, want[order], **close)

    support, query = (np.full((n, *x.shape[1:]), np.nan) for n in (S + 2, Q + 4))
    s, q = np.arange(1, S + 1), np.r_[0:4, 6 : Q + 2]
    labels = np.zeros(S + 2, int)
    support[s], labels[s], query[q] = x[:S], LABELS, x[S:]
    padded = make_episode(
        *(support.astype(np.float32), labels, query.astype(np.float32), WAY),
        support_mask=np.isin(np.arange(S + 2), s),
        query_mask=np.isin(np.arange(Q + 4), q),
    )
    np.testing.assert_allclose(apply(variables, padded)[q], want, **close)
    assert np.isfinite(apply(variables, padded)).all()


def test_gradients_are_finite_on_equal_rows(head):
    variables = variables_of(head)

    def total(x):
        return head.apply(variables, episode_of(x)).sum()

    for x in (jnp.zeros, jnp.ones):
        gradient = jax.jit(jax.grad(total))(x((S + Q, *ROW[head.inputs])))
        assert np.isfinite(gradient).all()


def test_it_lowers_for_every_platform(head):
    episode = episode_of(rows(ROW[head.inputs]))
    shapes = jax.eval_shape(head.init, jax.random.key(0), episode)
    lowered = jax.jit(head.apply).trace(shapes, episode)
    for platform in ("cpu", "cuda", "tpu"):
        assert lowered.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("name", ["tpn", "relation", "matching"])
def test_any_way_and_shot_goes_where_the_weights_do_not_depend_on_it(name):
    head = CASES[name]
    variables = jax.eval_shape(
        head.init, jax.random.key(0), episode_of(rows(ROW[head.inputs]))
    )
    other = empty_episode(ROW[head.inputs], way=4, shot=5, query=2)
    assert jax.eval_shape(head.apply, variables, other).shape == (8, 4)


@pytest.mark.parametrize(
    ("side", "name", "shapes"),
    [
        (3, "tpn", {"hidden": (4, 18)}),
        (7, "tpn", {"hidden": (9, 18)}),
        (3, "relation", {"hidden": (512, 8)}),
        (7, "relation", {"hidden": (512, 8)}),
    ],
)
def test_sizes_are_those_of_the_published_codes(side, name, shapes):
    """Maps of 84 and of 224 pixels."""
    head = HEADS.make(name)
    episode = empty_episode((side, side, 512), way=5, shot=1, query=1)
    params = jax.eval_shape(head.init, jax.random.key(0), episode)["params"]
    params = params.get("length_scale", params)
    assert {part: params[part]["kernel"].shape for part in shapes} == shapes


@pytest.mark.parametrize("side", [3, 7])
def test_tpn_is_torchs(side):
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    from models import torch_heads

    head, row = TPN(k=4, alpha=0.9), (side, side, 4)
    variables = variables_of(head, row)
    stats = variables["batch_stats"]["length_scale"]

    def oracle(p, x):
        labels = torch.tensor(LABELS)
        return torch_heads.tpn(
            *(p, x[:S], labels, x[S:], WAY), stats=stats, k=4, alpha=0.9
        ) + torch_uniform_share(x, p)

    def torch_uniform_share(x, p):  # All classes get the same of a uniform start.
        with torch.no_grad():
            got = head.apply(variables, episode_of(x.detach().numpy().astype("f")))
            zero = head.clone(uniform=False)
            bare = zero.apply(variables, episode_of(x.detach().numpy().astype("f")))
            share = np.array(got - bare, np.float64)
        np.testing.assert_allclose(share, share[:, :1].repeat(WAY, 1), atol=1e-5)
        return torch.tensor(share)

    torch_heads.assert_equal(
        head, variables, episode_of, rows(row), QUERY_LABELS, oracle
    )


@pytest.mark.parametrize("side", [3, 7])
def test_relation_is_torchs(side):
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    from models import torch_heads

    head, row = Relation(), (side, side, 4)

    def oracle(p, x):
        return torch_heads.relation(p, x[:S], torch.tensor(LABELS), x[S:], WAY)

    variables = variables_of(head, row)
    torch_heads.assert_equal(
        head, variables, episode_of, rows(row), QUERY_LABELS, oracle
    )


@pytest.mark.parametrize("context", ["lstm", "published", "none"])
def test_matching_is_torchs(context):
    torch = pytest.importorskip("torch", reason="needs the extra [torch]")
    from models import torch_heads

    from rdc_jax.models.heads.matching import _in_order

    head, x = Matching(context), rows(ROW["features"])
    sorted_sd, *_ = _in_order(episode_of(x))
    order = [int(np.flatnonzero((x[:S] == row).all(1))[0]) for row in sorted_sd]
    assert list(LABELS[order]) == [0, 0, 1, 1, 2, 2]

    def oracle(p, x):
        labels = torch.tensor(LABELS)
        return torch_heads.matching(
            p, x[:S], labels, x[S:], WAY, context=context, order=order
        )

    variables = variables_of(head) if context != "none" else {"params": {}}
    torch_heads.assert_equal(head, variables, episode_of, x, QUERY_LABELS, oracle)


def test_zero_and_uniform_labels_of_queries_give_tpn_the_same_answers():
    variables, episode = variables_of(TPN(k=4)), episode_of(rows(ROW["maps"]))
    zero, uniform = (
        jax.jit(TPN(k=4, uniform=choice).apply)(variables, episode)
        for choice in (False, True)
    )
    assert np.abs(zero - uniform).max() > 1e-3
    np.testing.assert_array_equal(zero.argmax(1), uniform.argmax(1))
    np.testing.assert_allclose(
        jax.nn.log_softmax(zero), jax.nn.log_softmax(uniform), atol=1e-4
    )


def test_running_moments_are_those_of_the_backbones_norm():
    x = 3 + jax.random.normal(jax.random.key(0), (5, 4, 4, 3))
    ones = jnp.ones((1, 5, 4, 4))
    norm, plain = EpisodeNorm("running"), BatchNorm()
    variables = plain.init(jax.random.key(0), x, train=False)
    want, stats = plain.apply(variables, x, train=True, mutable=["batch_stats"])
    got, new = norm.apply(
        variables, x[None], Counts(ones, ones), train=True, mutable=["batch_stats"]
    )
    np.testing.assert_allclose(got[0], want, atol=1e-5)
    for ours, theirs in zip(*map(jax.tree.leaves, (new, stats)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("gnn", {"layout": "rings"}),
        ("gnn", {"moments": "all"}),
        ("tpn", {"moments": "all"}),
        ("relation", {"moments": "support"}),
        ("matching", {"context": "gru"}),
    ],
)
def test_options_that_are_none_are_told(name, option):
    with pytest.raises(UserError, match=r"\w+=\w+ of a head: choose from \w+, "):
        HEADS.make(name, **option)
