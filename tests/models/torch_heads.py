"""Heads in PyTorch, written from their descriptions, with plain loops: oracles."""

import compiling
import jax
import numpy as np
import optax
import torch
from torch import nn
from torch.nn import functional as F

SLOPE = 0.01


def by_batch(x, scale, bias):
    """Batch norm of rows by their own mean and biased variance."""
    flat = x.reshape(-1, x.shape[-1])
    flat = (flat - flat.mean(0)) / torch.sqrt(flat.var(0, unbiased=False) + 1e-5)
    return (flat * scale + bias).reshape(x.shape)


class Params(nn.Module):
    """The parameters of a Flax head by the same names, as leaves of torch."""

    def __init__(self, params):
        super().__init__()
        self.names = {}
        self._add(params, ())

    def _add(self, tree, path):
        for name, value in tree.items():
            if hasattr(value, "items"):
                self._add(value, (*path, name))
                continue
            tensor = nn.Parameter(torch.tensor(value.tolist(), dtype=torch.float64))
            self.register_parameter("__".join((*path, name)), tensor)

    def __getitem__(self, name):
        return getattr(self, name.replace(".", "__"))

    def linear(self, x, name):
        y = x @ self[f"{name}.kernel"]
        bias = getattr(self, f"{name}__bias".replace(".", "__"), None)
        return y if bias is None else y + bias

    def norm(self, x, name):
        return by_batch(x, self[f"{name}.scale"], self[f"{name}.bias"])


def gnn(p, support, labels, queries, way, graphs, noise=0.0):
    """Logits of the queries.

    Args:
      p: ``Params``.
      support: ``[s, d]``.
      labels: Of the supports.
      queries: ``[q, d]``.
      way: Classes.
      graphs: For each graph the numbers of its queries.
      noise: Added, as published biases are, wherever the package has left them out.
    """
    s = len(support)
    z = p.norm(
        p.linear(torch.cat([support, queries]), "project") + noise, "project_norm"
    )
    nodes = []
    for members in graphs:
        rows = [torch.cat([z[i], F.one_hot(labels[i], way)]) for i in range(s)]
        rows += [torch.cat([z[s + i], torch.zeros(way)]) for i in members]
        nodes.append(torch.stack(rows))
    x = torch.stack(nodes)
    for block in range(3):
        adjacency = edges(p, x, f"edges_{block}", noise)
        y = p.linear(torch.cat([x, adjacency @ x], -1), f"convs_{block}")
        if block < 2:
            y = F.leaky_relu(p.norm(y + noise, f"norms_{block}"), SLOPE)
            x = torch.cat([x, y], -1)
    logits = {}
    for graph, members in enumerate(graphs):
        for place, i in enumerate(members):
            logits[i] = y[graph, s + place]
    return torch.stack([logits[i] for i in range(len(queries))])


def edges(p, x, name, noise):
    """A softmax over the others of a score of |x_a - x_b|."""
    h = torch.abs(x[:, :, None] - x[:, None])
    for i in range(1, 5):
        h = p.norm(p.linear(h, f"{name}.conv{i}") + noise, f"{name}.norm{i}")
        h = F.leaky_relu(h, SLOPE)
    score = p.linear(h, f"{name}.score")[..., 0] + noise
    eye = torch.eye(x.shape[1], dtype=x.dtype)
    return torch.softmax(score - 1e8 * eye, -1) * (1 - eye)


def conv(p, x, name):
    """A 3x3 convolution of maps, channels last."""
    kernel = p[f"{name}.kernel"].permute(3, 2, 0, 1).contiguous()
    return F.conv2d(x.permute(0, 3, 1, 2), kernel, padding=1).permute(0, 2, 3, 1)


def pool(x, padding):
    return F.max_pool2d(x.permute(0, 3, 1, 2), 2, 2, padding).permute(0, 2, 3, 1)


def tpn(p, support, labels, queries, way, *, stats, k, alpha):
    """Propagation with running moments; zero labels for queries."""
    maps = torch.cat([support, queries])
    n, x = len(maps), maps
    for i in (1, 2):
        x, moments = conv(p, x, f"length_scale.conv{i}"), stats[f"norm{i}"]
        mean, var = (torch.tensor(np.float64(moments[m])) for m in ("mean", "var"))
        x = (x - mean) / torch.sqrt(var + 1e-5)
        name = f"length_scale.norm{i}"
        x = pool(torch.relu(x * p[f"{name}.scale"] + p[f"{name}.bias"]), 1)
    x = torch.relu(p.linear(x.reshape(n, -1), "length_scale.hidden"))
    feat = maps.mean((1, 2)) / p.linear(x, "length_scale.length")
    w = torch.exp(-((feat[:, None] - feat[None]) ** 2).mean(-1) / 2)
    kept = torch.zeros(n, n)
    for i in range(n):
        kept[i, torch.topk(w[i], k).indices] = 1
    w = w * ((kept + kept.T) > 0)
    d = torch.diag(w.sum(1) ** -0.5)
    label = torch.cat([F.one_hot(labels, way), torch.zeros(len(queries), way)])
    return (torch.linalg.inv(torch.eye(n) - alpha * d @ w @ d) @ label)[len(labels) :]


def relation(p, support, labels, queries, way):
    """A score a pair; the class's map stands before the query's."""
    means = [support[labels == c].mean(0) for c in range(way)]
    pairs = [torch.cat([mean, x], -1) for x in queries for mean in means]
    both = [p[f"conv1_{part}.kernel"] for part in ("class", "query")]
    kernel = torch.cat(both, 2).permute(3, 2, 0, 1).contiguous()
    x = F.conv2d(torch.stack(pairs).permute(0, 3, 1, 2), kernel, padding=1)
    x = torch.relu(p.norm(x.permute(0, 2, 3, 1), "norm1"))
    x = pool(x, 0)
    x = torch.relu(p.norm(conv(p, x, "conv2"), "norm2"))
    if x.shape[1] > 1:
        x = pool(x, 0)
    x = torch.relu(p.linear(x.reshape(len(pairs), -1), "hidden"))
    return p.linear(x, "score").reshape(len(queries), way)


def matching(p, support, labels, queries, way, *, context, order):
    """Log-probabilities; the supports in this order."""
    support, labels = support[order], labels[order]
    (s, d), embedded = support.shape, support
    if context != "none":
        shared, reading = (lstm_cell(p, name, d) for name in ("support", "query"))
        turns = range(s)[::-1] if context == "lstm" else [0, *range(s - 1, 0, -1)]
        states = [along(shared, support, turn, d) for turn in (range(s), turns)]
        backward = states[1][::-1] if context == "lstm" else states[1]
        embedded = support + torch.cat(states[0]) + torch.cat(backward)
        found = []
        for x in queries:
            h, c = x[None], torch.zeros(1, d)
            for _ in range(s):
                read = torch.softmax(h @ embedded.T, 1) @ embedded
                h, c = reading(torch.cat([x[None], read], 1), (h, c))
                h = h + x
            found.append(h[0])
        queries = torch.stack(found)
    cosine = F.normalize(queries) @ F.normalize(embedded).T
    votes = torch.softmax(100 * torch.relu(cosine), 1)
    return torch.log(votes @ F.one_hot(labels, way).to(votes.dtype) + 1e-6)


def along(cell, rows, turn, d):
    state, outputs = (torch.zeros(1, d), torch.zeros(1, d)), []
    for i in turn:
        state = cell(rows[i][None], state)
        outputs.append(state[0])
    return outputs


def lstm_cell(p, name, d):
    """``torch.nn.LSTMCell`` with our weights, through which gradients flow."""
    kernel, bias = p[f"{name}_kernel"], p[f"{name}_bias"]
    cell = nn.LSTMCell(len(kernel) - d, d)

    def step(x, state):
        weights = {
            "weight_ih": kernel[:-d].T,
            "weight_hh": kernel[-d:].T,
            "bias_ih": bias[0],
            "bias_hh": bias[1],
        }
        return torch.func.functional_call(cell, weights, (x, state))

    return step


@jax.jit
def _step_of_adam(params, grads):
    adam = optax.adam(1e-2)
    updates, _ = adam.update(grads, adam.init(params))
    return optax.apply_updates(params, updates)


def assert_equal(head, variables, make_episode, x, labels_q, oracle):
    """Logits, loss, gradients and one step of Adam are those of an oracle.

    Args:
      head: The head.
      variables: Its weights.
      make_episode: From all rows to an episode.
      x: The rows, supports first.
      labels_q: Of the queries.
      oracle: From ``Params`` and the rows of torch to logits.
    """
    params = variables["params"]
    rest = {name: tree for name, tree in variables.items() if name != "params"}

    def loss_of(params, x):
        logits = head.apply({"params": params, **rest}, make_episode(x))
        each = optax.softmax_cross_entropy_with_integer_labels(logits, labels_q)
        return each.mean(), logits

    step = jax.jit(jax.value_and_grad(loss_of, argnums=(0, 1), has_aux=True))
    with compiling.fully():
        (loss, logits), (grads, grad_x) = step(params, x)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        p = Params(params)
        tx = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        want = oracle(p, tx)
        want_loss = F.cross_entropy(want, torch.tensor(labels_q))
        want_loss.backward()
    finally:
        torch.set_default_dtype(before)
    np.testing.assert_allclose(logits, want.detach(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(loss, want_loss.item(), rtol=1e-4)
    largest = float(tx.grad.abs().max())
    np.testing.assert_allclose(grad_x, tx.grad, rtol=2e-3, atol=2e-4 * largest)
    flat = jax.tree_util.tree_flatten_with_path(grads)[0]
    assert len(flat) == len(list(p.parameters()))
    if not flat:
        return
    names = [".".join(key.key for key in path) for path, _ in flat]
    for name, (_, grad) in zip(names, flat, strict=True):
        wanted = p[name].grad
        atol = 2e-4 * max(float(wanted.abs().max()), 0.1)
        np.testing.assert_allclose(grad, wanted, rtol=2e-3, atol=atol, err_msg=name)

    torch.optim.Adam(p.parameters(), lr=1e-2).step()
    moved = jax.tree.leaves(_step_of_adam(params, grads))
    for name, after, (_, grad) in zip(names, moved, flat, strict=True):
        sure = np.abs(grad) > 1e-3  # Else rounding decides on the direction.
        after, want_after = np.asarray(after), p[name].detach().numpy()
        np.testing.assert_allclose(after[sure], want_after[sure], atol=2e-4)
