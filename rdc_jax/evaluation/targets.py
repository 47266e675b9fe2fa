"""The data sets of a run and their tasks, checked before any long work."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from rdc_jax.data.episodes import EpisodeSampler
from rdc_jax.data.opening import open_source
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.source import Source
from rdc_jax.errors import UserError
from rdc_jax.evaluation.options import Options


class Target(NamedTuple):
    """A data set to evaluate on.

    Attributes:
      source: Its images.
      samplers: Makes its tasks, by shot.
    """

    source: Source
    samplers: dict[int, EpisodeSampler]


def open_targets(options: Options) -> list[Target]:
    """Open the data sets and see whether tasks can be drawn from them.

    Args:
      options: Of the run.

    Returns:
      One target a data set.

    Raises:
      UserError: One is missing, has too few images, or has the name of another.
    """
    targets: list[Target] = []
    for spec in options.datasets:
        data_dir = options.data_dir or None
        source = open_source(spec, data_dir=data_dir, split=options.split)
        if any(source.name == target.source.name for target in targets):
            raise UserError(
                f"config.datasets has two data sets called {source.name!r}, the second "
                f"as {spec!r}: evaluate them in two work directories"
            )
        targets.append(Target(source, _samplers(source, source.labels, options)))
    return targets


def readable(target: Target, pixels: PixelCache, options: Options) -> Target:
    """Draw the tasks from the images that could be decoded."""
    if len(pixels) == len(target.source):
        return target
    return target._replace(samplers=_samplers(target.source, pixels.labels, options))


def _samplers(
    source: Source, labels: Int32[np.ndarray, " n"], options: Options
) -> dict[int, EpisodeSampler]:
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
