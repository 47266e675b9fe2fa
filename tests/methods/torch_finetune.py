"""RDC-FT on the tiny network in PyTorch, with targets from the plain-loop oracle."""

import numpy as np
import torch
from oracles import rdc as oracle
from torch import nn


class TinyNet(nn.Module):
    """``tiny.TinyNet`` with the weights of its Flax twin."""

    def __init__(self, variables) -> None:
        super().__init__()
        params, stats = variables["params"], variables["batch_stats"]["norm"]
        self.conv = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.dense = nn.Linear(8, 8)
        copies = {
            self.conv.weight: np.asarray(params["conv"]["kernel"]).transpose(
                3, 2, 0, 1
            ),
            self.norm.weight: params["norm"]["scale"],
            self.norm.bias: params["norm"]["bias"],
            self.norm.running_mean: stats["mean"],
            self.norm.running_var: stats["var"],
            self.dense.weight: np.asarray(params["dense"]["kernel"]).T,
            self.dense.bias: params["dense"]["bias"],
        }
        with torch.no_grad():
            for tensor, value in copies.items():
                tensor.copy_(torch.from_numpy(np.array(value)))

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.dense(x.mean((2, 3)))


def distances(feat_nd, rows="l2"):
    """Euclidean between rows; the root's slope at 0 is left out."""
    feat_nd = nn.functional.normalize(feat_nd) if rows == "l2" else feat_nd
    squared = (feat_nd[:, None] - feat_nd[None]).square().sum(-1)
    off = ~torch.eye(len(feat_nd), dtype=torch.bool)
    return torch.where(off, torch.where(off, squared, 1.0).sqrt(), 0.0)


def target_of(feat_nd, labels_s, num_classes, params, labelled=False):
    """Calibrated distances and neighbours, by the plain loops."""
    s, fixed = len(labels_s), feat_nd.detach().numpy()
    _, target, _, member = oracle.rdc(
        fixed[:s], labels_s, fixed[s:], num_classes, params
    )
    target = np.array(target)
    if labelled:
        farthest = target.max()
        for i in range(s):
            for j in range(s):
                target[i, j] = 0 if labels_s[i] == labels_s[j] else farthest
    return target, np.array(member)


def divergence(feat_nd, target, member, alpha, tau, queries=None, **readings):
    """Eq. 12, written as a sum over rows of KL(target || original)."""
    which = readings.get("attention", "both")
    weight = torch.from_numpy(1.0 + alpha * member).float()
    off = ~torch.eye(len(target), dtype=torch.bool)

    def log_soft(dist_nn, name):
        weighed = weight * dist_nn if which in ("both", name) else dist_nn
        logits = torch.where(off, -weighed / tau, -torch.inf)
        return torch.log_softmax(logits, dim=1)

    log_p = log_soft(torch.from_numpy(target).float(), "target")
    log_q = log_soft(distances(feat_nd, readings.get("trained", "l2")), "original")
    rows = range(len(target)) if queries is None else np.flatnonzero(queries)
    total = 0.0
    for i in rows:
        p, q = log_p[i][off[i]], log_q[i][off[i]]
        total = total + (p.exp() * (p - q)).sum()
    if readings.get("total", "mean") == "mean":
        total = total / len(rows)
    return total * tau**2 if readings.get("tau_squared", True) else total


def loss_of(feat_nd, labels_s, num_classes, params, alpha, tau):
    """Eq. 12 in the default reading."""
    target, member = target_of(feat_nd, labels_s, num_classes, params)
    return divergence(feat_nd, target, member, alpha, tau)


def steps(network, images_of, plain, labels_s, num_classes, params, readings, count):
    """Weights after each of the first steps, in some reading of Algorithm 1.

    Args:
      network: Trained by Adam at 1e-2, by the statistics of its mode.
      images_of: From a step to its images.
      plain: Images without augmentation.
      labels_s: Of the supports.
      num_classes: How many classes.
      params: Of RDC.
      readings: By name, as of ``FinetuneOptions``; ``orders``, of the images, for
        small batches.
      count: How many steps.
    """
    readings = dict(readings)
    decay = readings.pop("weight_decay", 0.0)
    adam = torch.optim.Adam(network.parameters(), lr=1e-2, weight_decay=decay)
    kind, seen = readings.pop("target", "each_step"), []
    labelled, orders = readings.pop("labelled", False), readings.pop("orders", None)
    plainly, batch = (
        readings.pop("target_pass", "step") == "plain",
        readings.pop("batch", 0),
    )
    queries = np.arange(len(plain)) >= len(labels_s)
    queries = queries if readings.pop("rows", "all") == "queries" else None
    mode = network.training
    for number in range(count):
        images = images_of(number)
        source = network.eval()(plain) if plainly else None
        if source is None:  # Without a trace in the running statistics.
            kept = {key: value.clone() for key, value in network.state_dict().items()}
            source = network.train(mode)(images)
            network.load_state_dict(kept)
        network.train(mode)
        target, member = target_of(source, labels_s, num_classes, params, labelled)
        seen.append((target, member))
        if kind == "fixed":
            target, member = seen[0]
        if kind == "mean":
            target = np.mean([one for one, _ in seen], axis=0)
        order = orders[number] if batch else np.arange(len(plain))
        for start in range(0, len(order), batch or len(order)):
            rows = order[start : start + (batch or len(order))]
            part = np.ix_(rows, rows)
            loss = divergence(
                network(images[torch.from_numpy(np.array(rows))]),
                target[part],
                member[part],
                0.5,
                3.0,
                None if queries is None else queries[rows],
                **readings,
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
        yield {
            name: value.detach().numpy() for name, value in network.named_parameters()
        }
