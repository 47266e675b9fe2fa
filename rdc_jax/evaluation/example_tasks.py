"""Single tasks, kept for the pictures of the report.

One file for each data set and shot, ``examples/<dataset>-<shot>.npz``, has the features
of the first task and the answers of NPC and RDC; another one for each method that
trains on the task has the features after that. A file names its run by a digest of what
decides on its content, so one of another run is written again, and never shown.
"""

import contextlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from rdc_jax.core.calibration import rdc
from rdc_jax.core.prototypes import npc, predictions
from rdc_jax.data.pixels import cache_name
from rdc_jax.evaluation.datasets import DataSet
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.runtime import checksums
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.files import replacing

FOLDER = "examples"

# Fields of the config that decide on the tasks and their answers.
_DECIDING = (
    *("split", "skip_unreadable", "image_size", "dirichlet", "seed"),
    *("way", "ways", "query", "queries", "max_support"),
    *("rdc", "finetune", "features"),
)


def write(
    workdir: pathlib.Path,
    header: Mapping[str, Any],
    dataset: DataSet,
    shot: Shot,
    features_of: Callable[[Int[np.ndarray, " n"]], Float[np.ndarray, "n d"] | None],
    options: Options,
    trained_by: Entry | None = None,
) -> None:
    """Write the example of a data set and shot, unless it is there.

    Without a method that works by neighbours there is nothing to show.

    Args:
      workdir: Folder that the run writes to.
      header: The ledger's header.
      dataset: Whose first task it is.
      shot: Labelled images a class.
      features_of: From the numbers of the task's images to their features; None if
        there are none to show.
      options: The typed config of the run.
      trained_by: The method whose training the features come from, if one did.

    Raises:
      UserError: The file cannot be written.
    """
    if not any(method.uses_neighbours for method in options.methods):
        return
    run = run_id(header)
    path = path_of(workdir, dataset.name, shot, trained_by)
    if _run_of(path) == run:
        return
    sampler = dataset.samplers[shot]
    task = sampler(range(1))
    real_n = task.mask[0]
    s, labels_n = int(real_n[: sampler.spec.support_size].sum()), task.labels[0, real_n]
    feat_nd = features_of(task.indices[0, real_n])
    if feat_nd is None:
        return
    classes = task.classes[0, task.classes[0] >= 0].tolist()
    episode = (feat_nd[:s], labels_n[:s], feat_nd[s:], len(classes))
    _save(
        path,
        run=run,
        dataset=dataset.name,
        shot=shot,
        trained_by=trained_by.title if trained_by else "",
        class_names=np.array([dataset.class_names[i] for i in classes]),
        labels_s=labels_n[:s],
        labels_q=labels_n[s:],
        features=np.asarray(feat_nd),
        npc=np.asarray(predictions(_npc(*episode))),
        rdc=np.asarray(_rdc(*episode, params=options.rdc).predictions),
    )


def run_id(header: Mapping[str, Any]) -> str:
    """Name a run by what its tasks and answers are a function of.

    ``header`` is the ledger's, or ``provenance`` of ``results.json``, which is the
    same.
    """
    parts = {name: header.get(name) for name in ("checkpoint", "data")}
    config = {name: header["config"].get(name) for name in _DECIDING}
    return checksums.of_json({**parts, "config": config})


def path_of(
    workdir: pathlib.Path, dataset: str, shot: Shot, trained_by: Entry | None = None
) -> pathlib.Path:
    """Where the example of a data set and shot is.

    >>> path_of(pathlib.Path("run"), "tfds:eurosat/rgb", 5).name
    'tfds_eurosat_rgb-5.npz'
    """
    names = [dataset, str(shot), *([trained_by.name] if trained_by else [])]
    return workdir / FOLDER / f"{cache_name(*names)}.npz"


_npc = jax.jit(npc, static_argnames="num_classes")
_rdc = jax.jit(rdc, static_argnames="num_classes")


def _save(path: pathlib.Path, **values: Any) -> None:
    with contextlib.suppress(OSError):  # Then the file cannot be written either.
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "make room, then run the same command") as file:
        np.savez_compressed(file, **values)


def _run_of(path: pathlib.Path) -> str:
    """The run that a file belongs to; empty where it is missing or damaged."""
    try:
        with path.open("rb") as file, np.load(file) as archive:
            return str(archive["run"])
    except Exception:  # Damaged archives raise nearly everything.
        return ""
