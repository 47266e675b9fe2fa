"""From a source to batches: which images each step sees, as a function of the step."""

import functools
import logging
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from rdc_jax.data import batches
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import MissingSplit
from rdc_jax.data.open import open_source
from rdc_jax.data.pixels import PixelCache, pixel_cache
from rdc_jax.data.transforms import resize_size
from rdc_jax.pretrain.objectives import Batches
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime import processes
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)


class RunImages(NamedTuple):
    """Decoded images.

    Attributes:
      base: Of the base classes, to train on.
      held_out: Of the classes of validation; None without validation.
    """

    base: PixelCache
    held_out: PixelCache | None

    @property
    def fingerprints(self) -> dict[str, str]:
        """Identity of the images' content."""
        parts = self._asdict().items()
        return {name: part.fingerprint for name, part in parts if part is not None}


def open_images(options: Options, workdir: pathlib.Path) -> RunImages:
    """Find the images and decode them, once, into the cache.

    A source without a split for validation is trained on without validation.

    Raises:
      UserError: They are missing or unreadable.
    """
    cache_dir = options.cache_dir or str(workdir / "cache")
    stored_size = options.stored_size or resize_size(options.image_size)
    # Both are found before the first image is decoded.
    base = open_source(options.source, options.data_dir or None, options.split)
    held_out = _open_held_out(options) if options.validation.episodes else None
    decode = functools.partial(pixel_cache, size=stored_size, cache_dir=cache_dir)
    return RunImages(decode(base), None if held_out is None else decode(held_out))


def _open_held_out(options: Options) -> ImageSet | None:
    """Images to validate on; None where the source of the training has none."""
    source, split = options.validation.source, options.validation.split
    try:
        return open_source(source or options.source, options.data_dir or None, split)
    except MissingSplit as missing:
        if source:
            raise MissingSplit(
                f"{missing}; --config.validation.split=all takes all its classes"
            ) from missing
        _log.warning(
            "training without validation: %s; --config.validation.source may name "
            "another data set",
            missing,
        )
        return None


def images_a_step(options: Options, kind: Batches, available: int) -> int:
    """Count the images of one step, over all devices.

    Args:
      options: Of the run.
      kind: What the objective's batches are of.
      available: Number of images there are.

    Raises:
      UserError: The step cannot be split over the devices, or is too large.
    """
    task = options.episode
    count, fields = options.batch_size, "--config.batch_size"
    if kind == "tasks":
        count = task.support_size + task.query_size
        fields = "way x (shot + query) of --config.episode"
    processes.check_batch_size(count, fields)
    if count > available:
        raise UserError(
            f"a step takes {count} images, {options.source} has {available}: "
            f"lower {fields}"
        )
    return count


def make_batches(
    options: Options, kind: Batches, pixels: PixelCache, start: int
) -> Iterator[dict[str, np.ndarray]]:
    """Make this process's rows of each step's batch.

    Args:
      options: Of the run.
      kind: Shuffled images, all of them once an epoch; or a few-shot task a step.
      pixels: Images of the base classes.
      start: Number of the first step.

    Yields:
      Arrays ``image``, ``label`` and ``aspect``.
    """
    index, count = jax.process_index(), jax.process_count()
    if kind == "images":
        made = batches.training_batches(
            pixels,
            batch_size=options.batch_size,
            seed=options.seed,
            start=start,
            shard_index=index,
            shard_count=count,
        )
    else:
        made = batches.task_batches(
            pixels, options.episode, seed=options.seed, start=start
        )
    for batch in made:
        rows = {name: batch[name] for name in ("image", "label", "aspect")}
        if kind == "tasks":  # Made whole in every process, which share its images.
            rows = {name: np.split(x, count)[index] for name, x in rows.items()}
        yield rows
