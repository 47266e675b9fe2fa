"""Training batches: deterministic, shared out among processes, resumable anywhere.

Batch ``t`` is a function of the seed, the data and ``t``, so a position is one number.
Whole batches are gathered at a time: passing single images through a pipeline costs far
more than copying them.
"""

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import grain
import numpy as np

from rdc_jax.data import draws
from rdc_jax.data.episodes import EpisodeSampler, EpisodeSpec
from rdc_jax.data.pixels import PixelCache
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

Batch = dict[str, np.ndarray]

# Few on purpose: a batch is one gather from memory, and waiting batches take memory.
_READING = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)


class Batches:
    """An endless iterator over batches whose position can be saved.

    The next batches are made in a thread while one is in use.

    Args:
      batch_at: Makes the batch of a step.
      identity: What the batches are a function of, JSON-able.
      steps_per_epoch: Batches in a pass over the images; None for episodes.

    Attributes:
      steps_per_epoch: Batches in a pass over the images; None for episodes.
    """

    def __init__(
        self,
        batch_at: Callable[[int], Batch],
        identity: dict[str, Any],
        steps_per_epoch: int | None = None,
    ) -> None:
        self.steps_per_epoch = steps_per_epoch
        self._identity = identity
        batches = grain.MapDataset.range(sys.maxsize).map(batch_at)
        self._iterator = iter(batches.to_iter_dataset(_READING))

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> Batch:
        return next(self._iterator)

    def seek(self, step: int) -> "Batches":
        """Go to a step, counted from 0; returns itself."""
        self._iterator.set_state({"next_index": step})
        return self

    def get_state(self) -> bytes:
        """The position, as JSON to save with a checkpoint."""
        step = self._iterator.get_state()["next_index"]
        return json.dumps({"step": step, **self._identity}).encode()

    def set_state(self, state: bytes) -> None:
        """Go to a saved position.

        It may come from another number of processes, but not from other settings or
        data: that is a ``UserError``.
        """
        saved = json.loads(state)
        for name, ours in self._identity.items():
            if (theirs := saved.get(name)) != ours:
                raise UserError(
                    f"the saved position is of batches with {name}={theirs}, not "
                    f"{ours}; go on with the same settings and data, or start anew"
                )
        self.seek(saved["step"])


def training_batches(
    pixels: PixelCache,
    *,
    batch_size: int,
    seed: int,
    shard_index: int = 0,
    shard_count: int = 1,
) -> Batches:
    """Shuffled batches of labelled images; every epoch is a new global shuffle.

    A batch is ``image`` uint8 [b, h, w, 3], ``label`` int32 [b], ``index`` int64 [b]
    (the image's place in ``pixels``) and ``aspect`` float32 [b], with
    ``b = batch_size // shard_count``. The shards of a step, one after the other, are
    the batch that a single process would make. The images left over at the end of an
    epoch are dropped.

    Args:
      pixels: The images.
      batch_size: Images a step, over all processes.
      seed: Of the shuffles.
      shard_index: Which share of each batch to make, such as ``jax.process_index()``.
      shard_count: Number of shares, such as ``jax.process_count()``.

    >>> from rdc_jax.data.pixels import PixelCache
    >>> n = 10
    >>> pixels = PixelCache(
    ...     name="noise", split="train", class_names=("one",),
    ...     images=np.zeros((n, 8, 8, 3), np.uint8), labels=np.zeros(n, np.int32),
    ...     aspects=np.ones(n, np.float32), rows=np.arange(n), fingerprint="ab12")
    >>> batches = training_batches(pixels, batch_size=4, seed=0)
    >>> next(batches)["image"].shape, batches.steps_per_epoch
    ((4, 8, 8, 3), 2)
    """
    _check_shards(batch_size, shard_index, shard_count)
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
        uniform_1n = draws.uniforms(key, np.array([epoch]), len(pixels))
        return uniform_1n[0].argsort(kind="stable")

    def batch_at(step: int) -> Batch:
        epoch, place = divmod(step, steps)
        first = place * batch_size + shard_index * local
        return _gather(pixels, order(epoch)[first : first + local])

    identity = {"images": pixels.fingerprint, "batch_size": batch_size, "seed": seed}
    return Batches(batch_at, identity, steps)


def episode_batches(
    pixels: PixelCache,
    spec: EpisodeSpec,
    *,
    seed: int,
    shard_index: int = 0,
    shard_count: int = 1,
) -> Batches:
    """Tasks of images for meta-training, one a step for each process.

    A batch is ``image`` uint8 [n, h, w, 3], ``label`` int32 [n] (0 ... way - 1),
    ``index`` int64 [n] and ``aspect`` float32 [n], support rows first (``Episodes``).
    Step ``t`` of shard ``s`` is episode ``t * shard_count + s``.

    Args:
      pixels: The images.
      spec: The shape of a task.
      seed: Of the tasks.
      shard_index: Which episode of each step to make.
      shard_count: Episodes a step, over all processes.
    """
    _check_shards(shard_count, shard_index, shard_count)
    dataset = f"{pixels.name} {pixels.split}"
    sampler = EpisodeSampler(
        pixels.labels,
        spec,
        seed=seed,
        dataset=dataset,
        class_names=pixels.class_names,
    )

    def batch_at(step: int) -> Batch:
        number = step * shard_count + shard_index
        episode = sampler(range(number, number + 1))
        rows = episode.indices[0].astype(np.int64)
        return {**_gather(pixels, rows), "label": episode.labels[0]}

    identity = {
        "images": pixels.fingerprint,
        "spec": [spec.way, spec.shot, spec.query, spec.dirichlet],
        "seed": seed,
        "episodes_a_step": shard_count,
    }
    return Batches(batch_at, identity)


def _gather(pixels: PixelCache, rows: np.ndarray) -> Batch:
    return {
        "image": pixels.images[rows],
        "label": pixels.labels[rows],
        "index": rows,
        "aspect": pixels.aspects[rows],
    }


def _check_shards(batch_size: int, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise ValueError(f"shard_index={index} is not below shard_count={count}")
    if batch_size % count:
        raise UserError(
            f"batch_size={batch_size} does not divide among {count} processes; "
            f"use a multiple of {count}"
        )
