"""Steps of training on few-shot tasks, by us and by PyTorch: for ``systems.py``.

One step is forward, backward and Adam of ResNet10 and a head on one task, batch
statistics on; augmentation is left out. The PyTorch networks are what a good user
writes, channels last, with all graphs of a task in one batch.
"""

import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from torch import nn
from torch.nn import functional as F

from rdc_jax.configs.pretrain import get_config
from rdc_jax.pretrain.objectives import Batch, get_objective
from rdc_jax.pretrain.options import Options

# The reference network of the parity tests.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from models.torch_reference import Feature

WAY, QUERY = 5, 16
Step = Callable[[], Any]
Maker = Callable[[int], Step]  # From the size of the images.


class Episode(NamedTuple):
    """Normalised images, supports first, and their labels."""

    images: np.ndarray
    labels: np.ndarray
    shot: int


def draw(shot: int, size: int) -> Episode:
    """Draw a task of noise; its queries are class by class in turns."""
    labels = [np.repeat(np.arange(WAY), shot), np.tile(np.arange(WAY), QUERY)]
    labels = np.concatenate(labels)
    rng = np.random.default_rng(0)
    images = rng.standard_normal((len(labels), size, size, 3), np.float32)
    return Episode(images, labels, shot)


def ours(method: str, shot: int) -> Maker:
    """The package's objective of this name, and Adam."""

    def make(size: int) -> Step:
        episode = draw(shot, size)
        config = get_config("gnn,reduced").unlock()
        config.method, config.episode.shot = method, episode.shot
        objective = get_objective(method)(Options.from_config(config.to_dict()), 64)
        batch = Batch(jnp.asarray(episode.images), jnp.asarray(episode.labels))
        key, adam = jax.random.key(0), optax.adam(1e-3)
        init = jax.jit(objective.init, static_argnums=1)
        variables = init(key, size)
        state = [variables, adam.init(variables["params"])]

        def update(variables, opt_state, batch):
            def loss_of(params):
                return objective.loss({**variables, "params": params}, batch, key)

            found = jax.value_and_grad(loss_of, has_aux=True)(variables["params"])
            (loss, aux), grads = found
            updates, opt_state = adam.update(grads, opt_state)
            params = optax.apply_updates(variables["params"], updates)
            return {"params": params, "batch_stats": aux.batch_stats}, opt_state, loss

        jitted = jax.jit(update, donate_argnums=(0, 1))

        def step() -> float:
            *state[:], loss = jitted(*state, batch)
            return float(loss)

        return step

    return make


def theirs(make_head: Callable[[int, int], nn.Module], shot: int) -> Maker:
    """A head of PyTorch on the reference network, and its Adam."""

    def make(size: int) -> Step:
        episode, side = draw(shot, size), -(-size // 32)
        modules = nn.ModuleList([Feature(), make_head(episode.shot, side)])
        modules = modules.train().to(memory_format=torch.channels_last)
        adam = torch.optim.Adam(modules.parameters(), lr=1e-3)
        x = torch.from_numpy(episode.images.transpose(0, 3, 1, 2).copy())
        x = x.contiguous(memory_format=torch.channels_last)
        labels_q = torch.from_numpy(episode.labels[WAY * episode.shot :])

        def step() -> float:
            adam.zero_grad(set_to_none=True)
            backbone, head = modules
            loss = F.cross_entropy(head(backbone.trunk(x)), labels_q)
            loss.backward()
            adam.step()
            return loss.item()

        return step

    return make


class TorchGNN(nn.Module):
    """One query of each class in a graph; all graphs in one batch."""

    def __init__(self, shot: int, side: int) -> None:
        super().__init__()
        self.shot = shot
        own = {"track_running_stats": False}  # By the batch, at test too.
        self.project = nn.Sequential(nn.Linear(512, 128), nn.BatchNorm1d(128, **own))
        self.edges, self.convs, self.norms = (nn.ModuleList() for _ in range(3))
        for i, width in enumerate((133, 181, 229)):
            layers, inputs = [], width
            for outputs in (192, 192, 96, 96):
                layers += [
                    nn.Conv2d(inputs, outputs, 1),
                    nn.BatchNorm2d(outputs, **own),
                ]
                layers += [nn.LeakyReLU()]
                inputs = outputs
            self.edges.append(nn.Sequential(*layers, nn.Conv2d(96, 1, 1)))
            self.convs.append(nn.Linear(2 * width, 5 if i == 2 else 48))
            self.norms.append(nn.BatchNorm1d(48, **own))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Logits of the queries."""
        z = self.project(maps.mean((2, 3)))
        s = WAY * self.shot
        labels = torch.eye(WAY).repeat_interleave(self.shot, 0)
        support = torch.cat([z[:s], labels], 1).expand(QUERY, -1, -1)
        query = F.pad(z[s:], (0, WAY)).reshape(QUERY, WAY, -1)
        x = torch.cat([support, query], 1)
        off = 1e8 * torch.eye(x.shape[1])
        for i, (edges, conv) in enumerate(zip(self.edges, self.convs, strict=True)):
            difference = (x[:, :, None] - x[:, None]).abs().permute(0, 3, 1, 2)
            adjacency = torch.softmax(edges(difference)[:, 0] - off, -1)
            y = conv(torch.cat([x, adjacency @ x], -1))
            if i < 2:
                y = F.leaky_relu(self.norms[i](y.flatten(0, 1)).view_as(y))
                x = torch.cat([x, y], -1)
        return y[:, s:].reshape(-1, WAY)


class TorchTPN(nn.Module):
    """Length scales by a small network, then a dense solve."""

    def __init__(self, shot: int, side: int) -> None:
        super().__init__()
        self.s = WAY * shot
        for _ in range(2):
            side = side // 2 + 1
        self.scale = nn.Sequential(
            *(nn.Conv2d(512, 512, 3, padding=1), nn.BatchNorm2d(512), nn.ReLU()),
            nn.MaxPool2d(2, padding=1),
            *(nn.Conv2d(512, 1, 3, padding=1), nn.BatchNorm2d(1), nn.ReLU()),
            nn.MaxPool2d(2, padding=1),
            *(nn.Flatten(), nn.Linear(side**2, 18), nn.ReLU(), nn.Linear(18, 1)),
        )

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """What the queries receive of each class."""
        x = maps.mean((2, 3)) / (self.scale(maps) + 1e-6)
        n = len(x)
        w = torch.exp(-((x[:, None] - x[None]) ** 2).mean(-1) / 2)
        kept = torch.zeros_like(w).scatter_(1, w.topk(20, dim=1).indices, 1)
        w = w * ((kept + kept.T) > 0)
        root = w.sum(1).rsqrt()
        graph = root[:, None] * w * root[None]
        labels = torch.eye(WAY).repeat_interleave(self.s // WAY, 0)
        start = torch.cat([labels, torch.full((n - self.s, WAY), 1 / WAY)])
        return torch.linalg.solve(torch.eye(n) - 0.99 * graph, start)[self.s :]


# Ours, PyTorch's, and the steps of an episode.
EPISODES: dict[str, tuple[Maker, Maker, int]] = {
    "gnn": (ours("gnn(layout=balanced)", 5), theirs(TorchGNN, 5), 1),
    "gnn_1shot": (ours("gnn(layout=balanced)", 1), theirs(TorchGNN, 1), 1),
    "tpn": (ours("tpn", 5), theirs(TorchTPN, 5), 1),
}
