"""Images a second of the train transform, beside Pillow in threads.

    python benchmarks/transforms.py [--size=84] [--batch=64] [--rounds=10]

Both crop, resize, jitter, mirror and normalise the same decoded images, in one process
and in turns. Pillow runs in one thread a core (it lets go of Python's lock in the
resize, not in all else), with the parameters drawn beforehand.
"""

import argparse
import concurrent.futures
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from PIL import Image, ImageEnhance

from rdc_jax.core import imagenet
from rdc_jax.data import transforms

_MEAN = np.asarray(imagenet.MEAN, np.float32)
_STD = np.asarray(imagenet.STD, np.float32)


def pillow(image: np.ndarray, box: np.ndarray, factors: np.ndarray, size: int):
    """One image through the pipeline that PyTorch users have."""
    left, top, width, height = box
    crop = Image.fromarray(image).crop((left, top, left + width, top + height))
    crop = crop.resize((size, size), Image.Resampling.BILINEAR)
    kinds = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
    for kind, factor in zip(kinds, factors, strict=True):
        crop = kind(crop).enhance(factor)
    if factors[0] > 1:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return (np.asarray(crop, np.float32) / 255 - _MEAN) / _STD


class Cost(NamedTuple):
    """What one image takes, in the best of several rounds."""

    wall: float
    cpu: float  # summed over cores: comparable on a busy machine too


def measure(run: Callable[[], object], images: int, rounds: int) -> Cost:
    """Run it several times."""
    costs = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        costs.append((time.perf_counter() - wall, time.process_time() - cpu))
    return Cost(*(min(column) / images for column in zip(*costs, strict=True)))


def main() -> None:
    """Measure both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=84)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()

    edge = transforms.resize_size(args.size)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (args.batch, edge, edge, 3), dtype=np.uint8)
    keys = jax.random.split(jax.random.key(0), args.batch)
    draw = jax.vmap(lambda key: transforms.sample_augmentation(key, edge, edge))
    drawn = jax.tree.map(np.asarray, jax.jit(draw)(keys))
    boxes = np.stack(drawn.box, axis=1).tolist()
    sizes = [args.size] * args.batch

    def ours() -> None:
        transforms.train_batch(keys, images, args.size).block_until_ready()

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def theirs() -> None:
            done = pool.map(pillow, images, boxes, drawn.factors.tolist(), sizes)
            np.stack(list(done))

        ours(), theirs()  # compile; start the threads
        a = measure(ours, args.batch, args.rounds)
        b = measure(theirs, args.batch, args.rounds)
    print(
        f"train transform, {edge} -> {args.size} px, batches of {args.batch}, ", end=""
    )
    print(f"{os.cpu_count()} cores, {jax.default_backend()}")
    print("            images/s   CPU µs/image")
    for name, cost in (("rdc_jax", a), ("Pillow", b)):
        print(f"  {name:8s}{1 / cost.wall:10.0f}{1e6 * cost.cpu:15.0f}")
    print(f"  {'ratio':8s}{b.wall / a.wall:10.2f}{b.cpu / a.cpu:15.2f}")


if __name__ == "__main__":
    main()
