"""Seconds a task of other authors' systems, in tuning or in training, beside PyTorch.

    python benchmarks/systems.py [--systems=finetune_ata,conft] [--size=84] [--rounds=3]

ResNet10, 5-way 1-shot. A round is one step of the system (an epoch of ``finetune_ata``,
one of Adam of ``conft``), by us and by PyTorch in turns; the table has the median round
times the steps of a task, and the ratio. PyTorch runs channels last, its fast layout on
CPU. It draws pseudo-samples as we do, and is spared the crops of ``conft``. ``gnn`` and
``tpn`` are steps of training on a task (``episodes.py``). Needs the extra [torch].
"""

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from episodes import EPISODES
from torch.nn import functional as F

from rdc_jax.methods import Task, get_method
from rdc_jax.models.load import load_backbone

# The reference network of the parity tests.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from models.torch_reference import Feature

WAY, DISTRACTORS, VERSIONS = 5, 128, 16
Step = Callable[[], Any]


def ours(name: str, size: int) -> Step:
    """A function that makes one step of our method."""
    rng = np.random.default_rng(0)
    edge = int(1.15 * size)
    images = rng.integers(0, 256, (WAY + DISTRACTORS, edge, edge, 3), dtype=np.uint8)
    task = Task(
        jnp.asarray(images[:WAY]),
        jnp.arange(WAY),
        jnp.asarray(images[:1]),
        num_classes=WAY,
        key=jax.random.key(0),
        distractors=(jnp.asarray(images[WAY:]), jnp.zeros(DISTRACTORS, jnp.int32)),
    )
    method: Any = get_method(name, image_size=size)
    step = jax.jit(method.step, donate_argnums=0)
    state = jax.jit(method.init)(task.key, load_backbone("packaged"), task)

    def run() -> None:
        nonlocal state
        state = jax.block_until_ready(step(state, task, task.key))

    return run


def torch_finetune_ata(size: int) -> Step:
    """An epoch on 80 pseudo-samples in batches of 4."""
    images, net = torch.randn(WAY, 3, size, size), network()
    head = torch.nn.Linear(512, WAY)
    sgd = torch.optim.SGD(
        [*net.parameters(), *head.parameters()],
        lr=0.01,
        momentum=0.9,
        dampening=0.9,
        weight_decay=1e-3,
    )
    labels = torch.arange(WAY).repeat_interleave(VERSIONS)

    def run() -> None:
        versions = [x for x in images for _ in range(VERSIONS)]
        made = torch.stack(
            [x if i % VERSIONS == 0 else changed(x) for i, x in enumerate(versions)]
        )
        made = made.contiguous(memory_format=torch.channels_last)
        for rows in torch.randperm(len(made)).split(4):
            sgd.zero_grad(set_to_none=True)
            F.cross_entropy(head(net(made[rows])), labels[rows]).backward()
            sgd.step()

    return run


def torch_conft(size: int) -> Step:
    """One step on 128 distractors and 10 views."""
    net = network()
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    far, near = (
        torch.randn(count, 3, size, size).contiguous(memory_format=torch.channels_last)
        for count in (DISTRACTORS, 2 * WAY)
    )
    labels = torch.arange(WAY).repeat_interleave(2)
    other = (labels[:, None] != labels[None]).float()
    row = torch.arange(2 * WAY)
    alpha = DISTRACTORS / (DISTRACTORS + 2 * WAY - 2)

    def run() -> None:
        far_md, near_ld = F.normalize(net(far)), F.normalize(net(near))
        weight = torch.exp(near_ld @ near_ld.T / 0.05)
        negative = 2 * alpha * (weight * other).sum(1)
        distractors = torch.exp(near_ld @ far_md.T / 0.05).sum(1)
        negative = negative + 2 * (1 - alpha) * distractors
        partner = weight[row, row ^ 1]
        loss = -torch.log(partner / (partner + negative) + 1e-5).mean()
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()

    return run


# Ours, PyTorch's, and the steps of a task.
SYSTEMS: dict[str, tuple[Callable[[int], Step], Callable[[int], Step], int]] = {
    "finetune_ata": (lambda size: ours("finetune_ata", size), torch_finetune_ata, 50),
    "conft": (lambda size: ours("conft", size), torch_conft, 100),
    **EPISODES,
}


def network() -> torch.nn.Module:
    """ResNet10 in training, channels last."""
    return Feature().train().to(memory_format=torch.channels_last)


def changed(x: torch.Tensor) -> torch.Tensor:
    """A pseudo-sample of one image, as a user writes it."""
    rng = np.random.default_rng()
    if rng.random() < 0.3:
        low, span = x.min(), x.max() - x.min()
        x = ((x - low) / span) ** rng.uniform(1, 1.5) * span + low
    if rng.random() < 0.5:
        edge = x.shape[1]
        height, width = rng.integers(edge // 8, edge // 2, 2)
        top, left = rng.integers(0, edge // 2, 2)
        x = x.clone()
        x[:, top : top + height, left : left + width] = x.mean((1, 2))[:, None, None]
    if rng.random() < 0.3:
        x = x[torch.randperm(3)]
    if rng.random() < 0.5:
        x = x.flip(int(rng.integers(1, 3)))
    if rng.random() < 0.5:
        x = torch.rot90(x, int(rng.integers(1, 4)), (1, 2))
    return x


def seconds(step: Step) -> float:
    """Of one step."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--size", type=int, default=84)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| system | rdc_jax, s a task | PyTorch, s a task | ratio |")
    print("|---|---|---|---|")
    for name in options.systems.split(","):
        mine, theirs, steps = SYSTEMS[name]
        both = [make(options.size) for make in (mine, theirs)]
        for step in both:  # Compiled, and warm.
            step()
        rounds = [[seconds(step) for step in both] for _ in range(options.rounds)]
        a, b = (steps * statistics.median(times) for times in zip(*rounds, strict=True))
        print(f"| {name} | {a:.1f} | {b:.1f} | {b / a:.2f} |", flush=True)


if __name__ == "__main__":
    main()
