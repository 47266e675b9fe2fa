"""Few-shot accuracy on held-out classes, the measure a run is judged by."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, UInt8

from rdc_jax.core.batching import over_episodes
from rdc_jax.core.prototypes import npc, predictions
from rdc_jax.data.episodes import EpisodeSampler, EpisodeSpec
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.transforms import test_batch
from rdc_jax.pretrain.objectives import features
from rdc_jax.pretrain.options import ValidationOptions
from rdc_jax.pretrain.state import Variables
from rdc_jax.runtime import processes

_ROWS_A_DEVICE = 64
_TASKS_AT_A_TIME = 50

Validate = Callable[[Variables], dict[str, float]]


def make_validate(
    backbone: Any,
    pixels: PixelCache,
    options: ValidationOptions,
    *,
    size: int,
    seed: int,
    layout: processes.Layout,
) -> Validate:
    """Prepare the validation of one network on one set of images.

    Args:
      backbone: Linen module.
      pixels: Images of the held-out classes.
      options: The tasks.
      size: The network's image size.
      seed: Of the tasks.
      layout: Where arrays live.

    Returns:
      A function from variables to named accuracies in percent, of nearest-prototype
      classification on l2-normalised features.
    """

    def embed(variables: Variables, images: UInt8[Array, "b h w 3"]) -> Array:
        return features(backbone, variables, test_batch(images, size))

    embed = jax.jit(embed, out_shardings=layout.replicated)
    tasks = {}
    for shot in options.shots:
        spec = EpisodeSpec(way=options.way, shot=shot, query=options.query)
        sampler = EpisodeSampler(
            pixels.labels,
            spec,
            seed=seed,
            dataset=pixels.name,
            class_names=pixels.class_names,
        )
        tasks[shot] = sampler(range(options.episodes))

    def validate(variables: Variables) -> dict[str, float]:
        feat_nd = _embed_all(lambda x: embed(variables, x), pixels.images, layout)
        return {
            f"val_{options.way}way_{shot}shot": 100
            * float(
                _accuracy(
                    feat_nd,
                    task.indices,
                    task.labels,
                    way=options.way,
                    supports=options.way * shot,
                )
            )
            for shot, task in tasks.items()
        }

    return validate


def score(accuracies: dict[str, float]) -> float:
    """Give the number that decides which checkpoint is best: the mean accuracy."""
    return float(np.mean(list(accuracies.values())))


def _embed_all(
    embed: Callable[[Array], Array],
    images: UInt8[np.ndarray, "n h w 3"],
    layout: processes.Layout,
) -> Float[np.ndarray, "n d"]:
    """Features of all images, in batches that every process takes a part of."""
    batch = _ROWS_A_DEVICE * jax.device_count()
    local = batch // jax.process_count()
    first = jax.process_index() * local
    parts = []
    for start in range(0, len(images), batch):
        rows = np.arange(start + first, start + first + local)
        rows = np.minimum(rows, len(images) - 1)  # The last batch repeats an image.
        parts.append(embed(processes.put_batch(layout, np.asarray(images[rows]))))
    return np.concatenate(jax.device_get(parts))[: len(images)]


@functools.partial(jax.jit, static_argnames=("way", "supports"))
def _accuracy(
    feat_nd: Float[ArrayLike, "n d"],
    indices_em: Int[ArrayLike, "e m"],
    labels_em: Int[ArrayLike, "e m"],
    *,
    way: int,
    supports: int,
) -> Float[Array, ""]:
    """Mean accuracy over tasks of nearest prototypes on l2-normalised features."""

    def one_task(
        indices_m: Int[Array, " m"], labels_m: Int[Array, " m"]
    ) -> Float[Array, ""]:
        feat_md = jnp.asarray(feat_nd)[indices_m]
        distances_qc = npc(
            feat_md[:supports], labels_m[:supports], feat_md[supports:], num_classes=way
        )
        return jnp.mean(predictions(distances_qc) == labels_m[supports:])

    each_task = over_episodes(one_task, chunk=_TASKS_AT_A_TIME)
    return jnp.mean(each_task(indices_em, labels_em))
