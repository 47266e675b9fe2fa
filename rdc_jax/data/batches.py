"""Training batches: deterministic, shared out among processes, resumable anywhere.

Batch ``t`` is a function of the seed, the data and ``t``, so a position is one number.
Whole batches are gathered at a time: passing single images through a pipeline costs far
more than copying them.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence

import grain
import numpy as np

from rdc_jax.data import philox
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

Batch = dict[str, np.ndarray]

# Few on purpose: a batch is one gather from memory, and waiting batches take memory.
_READING = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)


def training_batches(
    pixels: PixelCache,
    *,
    batch_size: int,
    seed: int,
    start: int = 0,
    shard_index: int = 0,
    shard_count: int = 1,
) -> Iterator[Batch]:
    """Shuffled batches of labelled images; every epoch is a new global shuffle.

    A batch is ``image`` uint8 [b, h, w, 3], ``label`` int32 [b], ``index`` int64 [b]
    (the image's row in ``pixels``) and ``aspect`` float32 [b], with
    ``b = batch_size // shard_count``. The shards of a step, one after the other, are
    the batch that a single process would make. The images left over at the end of an
    epoch are dropped. The next batches are made in a thread while one is in use.

    Args:
      pixels: The images.
      batch_size: Images a step, over all processes.
      seed: Another seed is another order of the images.
      start: The first step to make, counted from 0.
      shard_index: Which share of each batch to make, such as ``jax.process_index()``.
      shard_count: Number of shares, such as ``jax.process_count()``.

    >>> from rdc_jax.data.pixels import PixelCache
    >>> n = 10
    >>> pixels = PixelCache(
    ...     name="noise", split="train", class_names=("one",),
    ...     images=np.zeros((n, 8, 8, 3), np.uint8), labels=np.zeros(n, np.int32),
    ...     aspects=np.ones(n, np.float32), rows=np.arange(n), fingerprint="ab12")
    >>> next(training_batches(pixels, batch_size=4, seed=0))["image"].shape
    (4, 8, 8, 3)
    """
    batch_at = _shuffled(pixels, batch_size, seed, shard_index, shard_count)
    return _from_step(batch_at, start)


def task_batches(
    pixels: PixelCache, spec: TaskSpec, *, seed: int, start: int = 0
) -> Iterator[Batch]:
    """Tasks of images for meta-training; step ``t`` is task ``t``.

    A batch is ``image`` uint8 [n, h, w, 3], ``label`` int32 [n] (0 ... way - 1),
    ``index`` int64 [n] and ``aspect`` float32 [n], support rows first (``Tasks``).

    Args:
      pixels: The images.
      spec: The shape of a task.
      seed: Another seed is another set of tasks.
      start: The first step to make, counted from 0.
    """
    return _from_step(_tasks(pixels, spec, seed), start)


def domain_batches(
    domains: Sequence[PixelCache],
    spec: TaskSpec,
    *,
    images: int,
    redraw: int,
    seed: int,
    start: int = 0,
) -> Iterator[Batch]:
    """Images of the first domain, a task of one domain, and a task of another.

    A batch has the rows of the three, one after the other, as ``training_batches`` and
    ``task_batches`` make them. Which two domains give a task is drawn anew, in order
    and without replacement, every few steps.

    Args:
      domains: Two or more; the same images may be there twice.
      spec: The shape of both tasks.
      images: Of the first domain.
      redraw: Steps between draws.
      seed: Of the draws, the order of the images and the tasks.
      start: The first step to make, counted from 0.
    """
    images_at = _shuffled(domains[0], images, seed)
    tasks = [_tasks(pixels, spec, seed) for pixels in domains]
    key = int(checksums.of_json(["domains", seed])[:32], 16)

    def batch_at(step: int) -> Batch:
        uniform_1m = philox.uniforms(key, np.array([step // redraw]), len(domains))
        first, second = uniform_1m[0].argsort(kind="stable")[:2]
        # Numbers of their own, for both may be of the same images.
        parts = [images_at(step), tasks[first](2 * step), tasks[second](2 * step + 1)]
        return {
            name: np.concatenate([part[name] for part in parts]) for name in parts[0]
        }

    return _from_step(batch_at, start)


def _shuffled(
    pixels: PixelCache,
    batch_size: int,
    seed: int,
    shard_index: int = 0,
    shard_count: int = 1,
) -> Callable[[int], Batch]:
    """A function from a step to its share of shuffled images."""
    if not 0 <= shard_index < shard_count:
        raise ValueError(f"shard_index={shard_index} is not below {shard_count}")
    if batch_size % shard_count:
        raise UserError(
            f"batch_size={batch_size} does not divide among {shard_count} processes; "
            f"use a multiple of {shard_count}"
        )
    steps = len(pixels) // batch_size
    if steps == 0:
        raise UserError(
            f"batch_size={batch_size} is more than the {len(pixels)} images of "
            f"{pixels.name}; lower it"
        )
    local = batch_size // shard_count
    key = int(checksums.of_json(["shuffle", seed])[:32], 16)

    @functools.lru_cache(maxsize=2)
    def order(epoch: int) -> np.ndarray:
        uniform_1n = philox.uniforms(key, np.array([epoch]), len(pixels))
        return uniform_1n[0].argsort(kind="stable")

    def batch_at(step: int) -> Batch:
        epoch, step_of_epoch = divmod(step, steps)
        first = step_of_epoch * batch_size + shard_index * local
        return _gather(pixels, order(epoch)[first : first + local])

    return batch_at


def _tasks(pixels: PixelCache, spec: TaskSpec, seed: int) -> Callable[[int], Batch]:
    """A function from a number to the images of that task."""
    sampler = TaskSampler(
        pixels.labels,
        spec,
        seed=seed,
        dataset=f"{pixels.name} {pixels.split}",
        class_names=pixels.class_names,
    )

    def batch_at(number: int) -> Batch:
        task = sampler(range(number, number + 1))
        rows = task.indices[0].astype(np.int64)
        return {**_gather(pixels, rows), "label": task.labels[0]}

    return batch_at


def _from_step(batch_at: Callable[[int], Batch], start: int) -> Iterator[Batch]:
    """Batches from a step on, without end; a few are made ahead in a thread."""
    batches = iter(
        grain.MapDataset.range(sys.maxsize).map(batch_at).to_iter_dataset(_READING)
    )
    batches.set_state({"next_index": start})
    return batches


def _gather(pixels: PixelCache, rows: np.ndarray) -> Batch:
    return {
        "image": pixels.images[rows],
        "label": pixels.labels[rows],
        "index": rows,
        "aspect": pixels.aspects[rows],
    }
