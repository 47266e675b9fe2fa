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
from rdc_jax.pretrain.objectives import Domains, Objective, get_objective
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime import processes
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)


class RunImages(NamedTuple):
    """Decoded images.

    Attributes:
      base: Of the base classes, to train on.
      held_out: Of the classes of validation; None without validation.
      cache_dir: Where they are.
      others: Of the domains beside the training source, for objectives on several.
    """

    base: PixelCache
    held_out: PixelCache | None
    cache_dir: str
    others: tuple[PixelCache, ...] = ()

    @property
    def fingerprints(self) -> dict[str, str]:
        """Identity of the images' content."""
        parts: dict[str, PixelCache | None] = {
            "base": self.base,
            "held_out": self.held_out,
            **{f"domain{i}": part for i, part in enumerate(self.others, 2)},
        }
        return {n: part.fingerprint for n, part in parts.items() if part is not None}


def open_images(options: Options, workdir: pathlib.Path) -> RunImages:
    """Find the images and decode them, once, into the cache.

    A source without a split for validation is trained on without validation.

    Raises:
      UserError: They are missing or unreadable.
    """
    cache_dir = options.cache_dir or str(workdir / "cache")
    stored_size = options.stored_size or resize_size(options.image_size)
    # All are found before the first image is decoded.
    base = open_source(options.source, options.data_dir or None, options.split)
    held_out = _open_held_out(options) if options.validation.episodes else None
    objective = get_objective(options.method)(options, len(base.class_names))
    domains = _domains(objective)
    others = [_open_domain(name, domains.split, options) for name in domains.names]
    decode = functools.partial(pixel_cache, size=stored_size, cache_dir=cache_dir)
    return RunImages(
        decode(base),
        None if held_out is None else decode(held_out),
        cache_dir,
        tuple(map(decode, others)),
    )


def _domains(objective: Objective) -> Domains:
    """What an objective on several domains takes; nothing of others."""
    return getattr(objective, "domains", Domains((), "", 0, 1))


def _open_domain(name: str, split: str, options: Options) -> ImageSet:
    """Images of a source domain beside the training source."""
    try:
        return open_source(name, options.data_dir or None, split)
    except UserError as error:
        raise UserError(
            f"the source domain {name!r} of {options.method}: {error}"
        ) from error


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


def images_a_step(options: Options, objective: Objective, available: int) -> int:
    """Count the images of one step, over all devices.

    Raises:
      UserError: The step cannot be split over the devices, or is too large.
    """
    task = options.episode
    count, fields = options.batch_size, "--config.batch_size"
    if objective.batches != "images":
        count = task.support_size + task.query_size
        fields = "way x (shot + query) of --config.episode"
    if objective.batches == "domains":
        count = 2 * count + _domains(objective).images
        fields = f"twice {fields} and the images of {options.method}"
    processes.check_batch_size(count, fields)
    if count > available:
        raise UserError(
            f"a step takes {count} images, {options.source} has {available}: "
            f"lower {fields}"
        )
    return count


def make_batches(
    options: Options, objective: Objective, images: RunImages, start: int
) -> Iterator[dict[str, np.ndarray]]:
    """Make this process's rows of each step's batch.

    An objective takes shuffled images, all of them once an epoch; or a few-shot task a
    step; or images and tasks of several domains.

    Yields:
      Arrays ``image``, ``label`` and ``aspect``.
    """
    index, count = jax.process_index(), jax.process_count()
    kind, seed, pixels = objective.batches, options.seed, images.base
    if kind == "images":
        made = batches.training_batches(
            pixels,
            batch_size=options.batch_size,
            seed=seed,
            start=start,
            shard_index=index,
            shard_count=count,
        )
    elif kind == "tasks":
        made = batches.task_batches(pixels, options.episode, seed=seed, start=start)
    else:
        domains = _domains(objective)
        made = batches.domain_batches(
            (pixels, *images.others),
            options.episode,
            images=domains.images,
            redraw=domains.redraw,
            seed=seed,
            start=start,
        )
    for batch in made:
        rows = {name: batch[name] for name in ("image", "label", "aspect")}
        if kind != "images":  # Made whole in every process, which share the images.
            rows = {name: np.split(x, count)[index] for name, x in rows.items()}
        yield rows
