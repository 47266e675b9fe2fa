"""Single tasks, kept whole for pictures: what the report draws and lists.

One file for each data set and shot, ``exhibits/<dataset>-<shot>.npz``, holds the first
task: its images, its features, and how NPC and RDC answer. It names the run that it
belongs to by a digest of what decides on these, so that a file of another run is
written again, and never shown with the wrong results.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Int, Int32, UInt8
from PIL import Image

from rdc_jax.core.calibration import rdc
from rdc_jax.core.params import RDCParams
from rdc_jax.core.prototypes import npc, predictions
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.evaluation.exhibit_file import (
    Answers,
    Exhibit,
    path_of,
    read,
    read_text,
    save,
)
from rdc_jax.evaluation.options import Options
from rdc_jax.runtime import checksums

_THUMBNAIL = 64  # Pixels: sharp in a list, about a megabyte a task.
_EPISODE = 0
# Fields of the config that decide on the tasks and their answers.
_DECIDING = (
    *("split", "skip_unreadable", "image_size", "way", "query", "dirichlet", "seed"),
    *("rdc", "finetune"),
)


def write(
    workdir: pathlib.Path,
    header: Mapping[str, Any],
    pixels: PixelCache,
    features_of: Callable[[Int32[np.ndarray, " n"]], Float32[np.ndarray, "n d"]],
    samplers: Mapping[int, TaskSampler],
    options: Options,
) -> None:
    """Write the exhibits of a data set, unless they are there.

    Without a method that calibrates there is nothing to show, and nothing is written.

    Args:
      workdir: Of the run.
      header: Of its ledger.
      pixels: Images of the data set.
      features_of: From numbers of images to their features.
      samplers: Of the data set's tasks, by shot.
      options: Of the run.

    Raises:
      UserError: A file cannot be written.
    """
    if not any(method.uses_neighbours for method in options.methods):
        return
    run = digest(header)
    for shot, sampler in samplers.items():
        path = path_of(workdir, pixels.name, shot)
        if not (path.exists() and read_text(path, "run") == run):
            save(path, _collect(run, pixels, features_of, sampler, options.rdc))


def digest(header: Mapping[str, Any]) -> str:
    """Name a run by what its tasks and answers are a function of.

    Args:
      header: Of the ledger; ``provenance`` of ``results.json`` is the same.
    """
    parts = {name: header.get(name) for name in ("checkpoint", "data")}
    config = {name: header["config"].get(name) for name in _DECIDING}
    return checksums.of_json({**parts, "config": config})


def add_after(
    path: pathlib.Path,
    feat_nd: Float[Array | np.ndarray, "n d"],
    params: RDCParams,
    title: str,
) -> None:
    """Add the features of a fine-tuned backbone to an exhibit.

    Args:
      path: The exhibit's file, see ``path_of``.
      feat_nd: Features of the task's images, in the order of the task.
      params: Of RDC.
      title: What tables call the method that fine-tuned.

    Raises:
      UserError: The file cannot be read or written.
    """
    found = read(path)
    after = _answer(
        np.asarray(feat_nd, np.float32),
        found.labels[: found.support_size],
        len(found.class_names),
        params,
    )
    save(path, dataclasses.replace(found, after=after, after_title=title))


def _collect(
    run: str,
    pixels: PixelCache,
    features_of: Callable[[Int32[np.ndarray, " n"]], Float32[np.ndarray, "n d"]],
    sampler: TaskSampler,
    params: RDCParams,
) -> Exhibit:
    task = sampler(range(_EPISODE, _EPISODE + 1))
    rows_n, labels_n = task.indices[0], task.labels[0]
    size = sampler.spec.support_size
    return Exhibit(
        run=run,
        dataset=pixels.name,
        shot=sampler.spec.shot,
        episode=_EPISODE,
        class_names=tuple(pixels.class_names[i] for i in task.classes[0].tolist()),
        support_size=size,
        labels=labels_n,
        images=np.stack([_thumbnail(pixels.images[row]) for row in rows_n]),
        before=_answer(features_of(rows_n), labels_n[:size], sampler.spec.way, params),
    )


def _answer(
    feat_nd: Float32[np.ndarray, "n d"],
    labels_s: Int32[np.ndarray, " s"],
    num_classes: int,
    params: RDCParams,
) -> Answers:
    answers = _computed(feat_nd, labels_s, num_classes, params)
    return Answers(features=np.asarray(feat_nd), **jax.device_get(answers))


@functools.partial(jax.jit, static_argnames="num_classes")
def _computed(
    feat_nd: Float[Array, "n d"],
    labels_s: Int[Array, " s"],
    num_classes: int,
    params: RDCParams,
) -> dict[str, Array]:
    """All fields of ``Answers`` but the features."""
    s = len(labels_s)
    task = (feat_nd[:s], labels_s, feat_nd[s:], num_classes)
    out = rdc(*task, params=params)
    return {
        "npc": predictions(npc(*task)),
        "rdc": out.predictions,
        "original": out.original,
        "calibrated": out.distances,
    }


def _thumbnail(image: UInt8[np.ndarray, "size size 3"]) -> UInt8[np.ndarray, "t t 3"]:
    small = Image.fromarray(image).resize((_THUMBNAIL, _THUMBNAIL))
    return np.asarray(small)
