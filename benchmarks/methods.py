"""Episodes a second of the methods on features, beside batched PyTorch.

``python benchmarks/methods.py [--episodes=400] [--methods=rdc_plus,tim]``

The PyTorch versions are what a good user writes: all tasks of a batch in one tensor,
the same iterations, all cores. Needs torch.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import torch

import rdc_jax
from rdc_jax.methods import Task, get_method

WAY, SHOT, QUERY, D = 5, 1, 15, 512
S = WAY * SHOT
T = torch.Tensor


def prepared(x: T) -> T:
    """Square root, l2, minus the task's mean, l2."""
    x = torch.nn.functional.normalize(x.clamp(min=0).sqrt(), dim=2)
    return torch.nn.functional.normalize(x - x.mean(1, keepdim=True), dim=2)


def means(x: T, y: T, answer: T) -> T:
    """Class means over supports and, weighed by the answers, queries."""
    member = torch.cat([y, answer], 1)
    return member.mT @ x / member.sum(1)[:, :, None]


def squares(x: T, mean: T) -> T:
    """Squared distances of rows to means."""
    return torch.cdist(x, mean) ** 2


def graph(cosine: T, k: int = 10) -> T:
    """Nearest neighbours by cosine cubed, over the roots of degrees."""
    cosine = cosine.clamp(min=0) * (1 - torch.eye(cosine.shape[1]))
    values, places = cosine.topk(k, dim=2)
    weight = torch.zeros_like(cosine).scatter_(2, places, values**3)
    weight = weight + weight.mT
    root = weight.sum(2).clamp(min=1e-12).rsqrt()
    return root[:, :, None] * weight * root[:, None]


def spread(x: T, start: T, alpha: float = 0.8) -> T:
    """Solve ``(I - αS) Z = Y``."""
    return torch.linalg.solve(torch.eye(x.shape[1]) - alpha * graph(x @ x.mT), start)


def head(gram: T, weight: T, strength: float = 10.0, steps: int = 30) -> T:
    """Logits of all rows under a linear head, by Nesterov's gradient."""
    gram, mass = gram + 1, weight.sum(2, keepdim=True)
    most = (gram.abs() * mass.mT).sum(2).amax(1)[:, None, None]
    curvature = 1 + 0.5 * strength * most
    momentum = (curvature.sqrt() - 1) / (curvature.sqrt() + 1)
    coef = ahead = torch.zeros_like(weight)
    for _ in range(steps):
        gradient = strength * (mass * torch.softmax(gram @ ahead, 2) - weight) + ahead
        moved = ahead - gradient / curvature
        coef, ahead = moved, moved + momentum * (moved - coef)
    return gram @ coef


def plan(cost: T, temperature: float = 10.0, scalings: int = 20) -> T:
    """Transport that sends each class as many rows."""
    log = -temperature * cost
    share = np.log(cost.shape[1] / cost.shape[2])
    for _ in range(scalings):
        log = log - log.logsumexp(2, keepdim=True)
        log = log - log.logsumexp(1, keepdim=True) + share
    return log.exp()


def npc_prepared(x: T, y: T) -> T:
    """Nearest prototypes."""
    return squares(x[:, S:], means(x[:, :S], y, y[:, :0]))


def soft_kmeans(x: T, y: T) -> T:
    """Thirty turns."""
    mean = means(x[:, :S], y, y[:, :0])
    for _ in range(30):
        mean = means(x, y, torch.softmax(-5 * squares(x[:, S:], mean), 2))
    return squares(x[:, S:], mean)


def bd_cspn(x: T, y: T) -> T:
    """One pass."""
    support, query = x[:, :S], x[:, S:]
    query = query + support.mean(1, keepdim=True) - query.mean(1, keepdim=True)
    rows = torch.nn.functional.normalize(torch.cat([support, query], 1), dim=2)
    mean = torch.nn.functional.normalize(means(support, y, y[:, :0]), dim=2)
    cosine = rows @ mean.mT
    joined = torch.nn.functional.one_hot(cosine[:, S:].argmax(2), WAY).float()
    weight = torch.cat([y, joined], 1) * (10 * cosine).exp()
    mean = torch.nn.functional.normalize(weight.mT @ rows, dim=2)
    return 1 - rows[:, S:] @ mean.mT


def label_propagation(x: T, y: T) -> T:
    """One solve a task."""
    start = torch.nn.functional.pad(y, (0, 0, 0, x.shape[1] - S))
    reached = spread(x, start)
    return -(reached / reached.sum(1, keepdim=True))[:, S:].log()


def laplacian_shot(x: T, y: T) -> T:
    """Twenty turns."""
    unary = -squares(x[:, S:], means(x[:, :S], y, y[:, :0]))
    similar = x[:, S:] @ x[:, S:].mT - 9 * torch.eye(x.shape[1] - S)
    near = torch.zeros_like(similar).scatter_(2, similar.topk(2, dim=2).indices, 1.0)
    answer = torch.softmax(unary, 2)
    for _ in range(20):
        answer = torch.softmax(unary + 0.7 * near @ answer, 2)
    return -answer.log()


def paddle(x: T, y: T) -> T:
    """A hundred turns."""
    mean, share = means(x[:, :S], y, y[:, :0]), torch.zeros(len(x), 1, WAY)
    for _ in range(100):
        answer = torch.softmax(share - 15 * squares(x[:, S:], mean), 2)
        share = (answer.mean(1, keepdim=True) + 1e-12).log()
        mean = means(x, y, answer)
    return 15 * squares(x[:, S:], mean) - share


def pt_map(x: T, y: T) -> T:
    """Twenty turns of twenty scalings."""
    mean = means(x[:, :S], y, y[:, :0])
    for _ in range(20):
        answer = plan(squares(x[:, S:], mean))
        mean = mean + 0.2 * (means(x, y, answer) - mean)
    return -plan(squares(x[:, S:], mean)).log()


def rdc_plus(x: T, y: T) -> T:
    """Three turns, one root and one inverse a task."""
    values, vectors = torch.linalg.eigh(x @ x.mT)
    root = (vectors * values.clamp(min=0).sqrt()[:, None]) @ vectors.mT
    scale = torch.diagonal(root, dim1=1, dim2=2).clamp(min=1e-12).rsqrt()
    cosine = scale[:, :, None] * root * scale[:, None]
    kernel = torch.linalg.inv(torch.eye(x.shape[1]) - 0.8 * graph(cosine, 8))
    joining = torch.zeros(len(x), x.shape[1] - S, WAY)
    for _ in range(3):
        logit = head(cosine, torch.cat([y, joining], 1))[:, S:]
        reached = kernel @ torch.cat([y, 0.5 * torch.softmax(2 * logit, 2)], 1)
        reached = (reached / reached.sum(1, keepdim=True))[:, S:]
        reached = reached / reached.sum(2, keepdim=True)
        joining = 0.5 * reached**2 / (reached**2).sum(2, keepdim=True) / SHOT**2
    return -reached.log()


def tim(x: T, y: T) -> T:
    """Fifty turns of the closed updates."""
    mean, q = means(x[:, :S], y, y[:, :0]), x.shape[1] - S
    for _ in range(50):
        answer = torch.softmax(-7.5 * squares(x, mean), 2)
        sharp = answer[:, S:] ** 1.1
        aim = sharp / sharp.sum(1, keepdim=True).sqrt()
        aim = torch.cat([0.1 / 1.1 / S * y, aim / aim.sum(2, keepdim=True) / q], 1)
        rows = torch.cat([0.1 / 1.1 / S * answer[:, :S], answer[:, S:] / q], 1)
        total = (aim - rows).mT @ x + rows.sum(1)[:, :, None] * mean
        mean = total / aim.sum(1)[:, :, None]
    return squares(x[:, S:], mean)


def logistic(x: T, y: T) -> T:
    """A hundred steps, by inner products."""
    weight = torch.nn.functional.pad(y, (0, 0, 0, x.shape[1] - S))
    return -head(x @ x.mT, weight, steps=100)[:, S:]


RIVALS: dict[str, Callable[[T, T], T]] = {
    fn.__name__: fn
    for fn in (
        *(npc_prepared, soft_kmeans, bd_cspn, label_propagation, laplacian_shot),
        *(paddle, pt_map, tim, logistic, rdc_plus),
    )
}


def rate(call: Callable[[], object], episodes: int, repeats: int = 3) -> float:
    """Episodes a second, the best of so many; the first call compiles."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return episodes / min(seconds)


def main() -> None:
    """Print one line a method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--methods", default=",".join(RIVALS))
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((args.episodes, WAY, D))
    labels = np.concatenate([np.arange(S) % WAY, np.arange(WAY * QUERY) % WAY])
    rows = centres[:, labels] + 2 * rng.standard_normal((args.episodes, len(labels), D))
    rows = np.maximum(rows, 0).astype(np.float32)
    support, query = jnp.asarray(rows[:, :S]), jnp.asarray(rows[:, S:])
    known = jnp.tile(jnp.asarray(labels[:S], jnp.int32), (args.episodes, 1))
    x = torch.from_numpy(rows)
    y = torch.eye(WAY)[labels[:S]].expand(args.episodes, S, WAY)
    print(f"{'method':20} {'here':>8} {'torch':>8}  episodes/s; n = {len(labels)}")
    for name in args.methods.split(","):
        method = get_method(name)

        def one(support, labels, query, method=method):  # type: ignore[no-untyped-def]
            return method(Task(support, labels, query, num_classes=WAY))

        batched = jax.jit(rdc_jax.over_episodes(one))
        here = rate(
            lambda fn=batched: jax.block_until_ready(fn(support, known, query)),
            args.episodes,
        )
        line = f"{name:20} {here:8.0f}"
        if rival := RIVALS.get(name.partition("(")[0]):
            with torch.inference_mode():
                line += (
                    f" {rate(lambda f=rival: f(prepared(x), y), args.episodes):8.0f}"
                )
        print(line, flush=True)


if __name__ == "__main__":
    main()
