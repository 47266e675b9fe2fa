"""The data sets of a run and their tasks, checked before any long work."""

import pathlib
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from rdc_jax.data.episodes import EpisodeSampler
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.open import open_source
from rdc_jax.data.pixels import PixelCache, pixel_cache
from rdc_jax.data.transforms import resize_size
from rdc_jax.evaluation.options import Options
from rdc_jax.runtime.errors import UserError

Samplers = dict[int, EpisodeSampler]
"""What makes the tasks of a data set, by shot."""


class Opened(NamedTuple):
    """A data set that tasks can be drawn from, as far as one can tell so far."""

    source: ImageSet
    samplers: Samplers


class Target(NamedTuple):
    """A data set to evaluate on.

    Attributes:
      source: Where its images come from.
      pixels: Its images, at the size that the test transform crops from.
      samplers: Of its tasks.
    """

    source: ImageSet
    pixels: PixelCache
    samplers: Samplers


def open_targets(options: Options) -> list[Opened]:
    """Open the data sets and see whether tasks can be drawn from them.

    Args:
      options: Of the run.

    Returns:
      One for each data set.

    Raises:
      UserError: One is missing, has too few images, or has the name of another.
    """
    found: dict[str, Opened] = {}
    for spec in options.datasets:
        data_dir = options.data_dir or None
        source = open_source(spec, data_dir=data_dir, split=options.split)
        if source.name in found:
            raise UserError(
                f"config.datasets has two data sets called {source.name!r}, the second "
                f"as {spec!r}: evaluate them in two work directories"
            )
        samplers = _samplers(source, source.labels, options)
        found[source.name] = Opened(source, samplers)
    return list(found.values())


def decode_targets(
    opened: list[Opened], options: Options, cache_dir: pathlib.Path
) -> list[Target]:
    """Decode all data sets, so that no broken image ends a run half-way.

    Args:
      opened: The data sets.
      options: Of the run.
      cache_dir: For decoded images.

    Returns:
      Their images and tasks; where images are left out, tasks are drawn from the rest.

    Raises:
      UserError: An image cannot be decoded.
    """
    targets = []
    for source, samplers in opened:
        pixels = pixel_cache(
            source,
            resize_size(options.image_size),
            cache_dir,
            skip_unreadable=options.skip_unreadable,
        )
        if len(pixels) < len(source):
            samplers = _samplers(source, pixels.labels, options)
        targets.append(Target(source, pixels, samplers))
    return targets


def _samplers(
    source: ImageSet, labels: Int32[np.ndarray, " n"], options: Options
) -> Samplers:
    return {
        shot: EpisodeSampler(
            labels,
            options.spec(shot),
            seed=options.seed,
            dataset=source.name,
            class_names=source.class_names,
        )
        for shot in options.shots
    }
