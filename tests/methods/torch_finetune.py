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


def distances(feat_nd):
    """Euclidean between l2-normalised rows; the root's slope at 0 is left out."""
    feat_nd = nn.functional.normalize(feat_nd)
    squared = (feat_nd[:, None] - feat_nd[None]).square().sum(-1)
    off = ~torch.eye(len(feat_nd), dtype=torch.bool)
    return torch.where(off, torch.where(off, squared, 1.0).sqrt(), 0.0)


def loss_of(feat_nd, labels_s, num_classes, params, alpha, tau):
    """Eq. 12, written as a sum over rows of KL(target || original)."""
    s, fixed = len(labels_s), feat_nd.detach().numpy()
    _, target, _, member = oracle.rdc(
        fixed[:s], labels_s, fixed[s:], num_classes, params
    )
    weight = torch.from_numpy(1.0 + alpha * member).float()
    off = ~torch.eye(len(fixed), dtype=torch.bool)

    def log_soft(dist_nn):
        logits = torch.where(off, -weight * dist_nn / tau, -torch.inf)
        return torch.log_softmax(logits, dim=1)[off]

    log_p = log_soft(torch.from_numpy(target).float())
    log_q = log_soft(distances(feat_nd))
    return tau**2 * (log_p.exp() * (log_p - log_q)).sum() / len(fixed)
