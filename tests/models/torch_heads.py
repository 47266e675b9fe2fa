"""Heads in PyTorch, written from their descriptions, one loop a graph: oracles."""

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
