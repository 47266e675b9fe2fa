"""Batches of a run: which images each step sees, as a function of the step."""

from collections.abc import Iterator

import jax
import numpy as np

from rdc_jax.data.batches import episode_batches, training_batches
from rdc_jax.data.episodes import EpisodeSpec
from rdc_jax.data.pixels import PixelCache
from rdc_jax.pretrain.step import Batch


def image_batches(
    pixels: PixelCache, batch_size: int, *, seed: int, start: int
) -> Iterator[Batch]:
    """Give shuffled images, all of them once an epoch.

    Args:
      pixels: Images of the base classes.
      batch_size: Images a step, over all processes.
      seed: Of the order.
      start: Number of the first step.

    Yields:
      This process's rows of each step's batch.
    """
    batches = training_batches(
        pixels,
        batch_size=batch_size,
        seed=seed,
        shard_index=jax.process_index(),
        start=start,
        shard_count=jax.process_count(),
    )
    for batch in batches:
        yield Batch(batch["image"], batch["label"], batch["aspect"])


def task_batches(
    pixels: PixelCache, spec: EpisodeSpec, *, seed: int, start: int
) -> Iterator[Batch]:
    """Give one few-shot task a step; the processes share it.

    Args:
      pixels: Images of the base classes.
      spec: Shape of a task.
      seed: Of the tasks.
      start: Number of the first step.

    Yields:
      This process's rows of each step's task; labels are the task's own.
    """
    for batch in episode_batches(pixels, spec, seed=seed, start=start):
        image, label, aspect = (
            _local_rows(batch[name]) for name in ("image", "label", "aspect")
        )
        yield Batch(image, label, aspect)


def _local_rows(rows: np.ndarray) -> np.ndarray:
    return np.split(rows, jax.process_count())[jax.process_index()]
