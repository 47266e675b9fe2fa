"""Every kind of file that the package writes: how it is made, and how it is used.

``make`` writes into a folder; ``use`` does what a program does with it, and gives all
that its results depend on, as something that can be compared.
"""

import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from data.fakes import FakeSource, fake_pixels
from reporting import made

from rdc_jax.data.features import feature_cache
from rdc_jax.data.pixels import pixel_cache
from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.evaluation.results import RESULTS
from rdc_jax.models import weights
from rdc_jax.models.checkpoints import Checkpoints, load_variables
from rdc_jax.models.torch_pickle import read_tensors
from rdc_jax.reporting import example_tasks, runs
from rdc_jax.runtime import checksums
from rdc_jax.runtime.workdir import record_run

_RNG = np.random.default_rng(0)
_COUNTS = _RNG.integers(0, 75, (30, 2))
_HEADER = {"config": {"seed": 0}, "data": {"cub": "cd34"}}
_STAGES = (Stage("cub", 1, "features"), Stage("cub", 5, "features"))
# Larger than what orbax keeps in its own, checked records.
_WEIGHTS = {"kernel": _RNG.standard_normal((3, 3, 16, 64)).astype(np.float32)}
_WEIGHTS |= {"scale": _RNG.standard_normal(64).astype(np.float32)}
_VARIABLES = {"params": {"backbone": _WEIGHTS}}
_RECORD = {"config": {"seed": 0, "epochs": 400}, "data": {"train": "ab12"}}


class Kind(NamedTuple):
    """A kind of file: see the module."""

    make: Callable[[pathlib.Path], Any]
    use: Callable[[pathlib.Path], Any]


def _go_on(folder):
    """A run, which adds to the ledger what is not on record."""
    with Ledger(folder / "ledger.jsonl", _HEADER) as ledger:
        for stage in _STAGES:
            if len(rest := _COUNTS[ledger.done(stage) :]):
                ledger.append(stage, rest)
        counts = [ledger.counts(stage).tobytes() for stage in _STAGES]
    return counts, (folder / "ledger.jsonl").read_bytes()


def _pixels(folder):
    cache = pixel_cache(FakeSource(length=40), 8, folder)
    return cache.images.tobytes(), cache.aspects.tobytes(), cache.labels.tobytes()


@jax.jit
def _features_of(images):
    return images.astype(jnp.float32).mean((1, 2))


def _features(folder):
    found = feature_cache(
        fake_pixels(),
        _features_of,
        weights_fingerprint="cd34" * 4,
        transform="none",
        cache_dir=folder,
        batch_size=16,
    )
    return found.tobytes()


def _save_steps(folder, *steps):
    with Checkpoints(folder / "checkpoints") as checkpoints:
        for step in steps:
            momentum = {name: x + step for name, x in _WEIGHTS.items()}
            checkpoints.save(
                step,
                variables=_VARIABLES,
                training={"momentum": momentum},
                metadata={"arch": "resnet10", "image_size": 84},
                score=0.5,
            )


def _tree(tree):
    return [
        (jax.tree_util.keystr(path), str(leaf.dtype), np.asarray(leaf).tobytes())
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]


def _load_backbone(folder):
    variables, metadata = load_variables(folder)
    return _tree(variables), metadata


def _resume(folder):
    """All that a resumed run has, of whichever step is the last whole one."""
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    abstract = functools.partial(
        jax.tree.map, lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
    )
    with Checkpoints(folder / "checkpoints") as checkpoints:
        got = checkpoints.restore_latest(
            abstract(_VARIABLES), abstract({"momentum": _WEIGHTS})
        )
    if got is None:  # As before the first step.
        return None
    shift = got.training["momentum"]["scale"] - _WEIGHTS["scale"]
    assert np.allclose(shift, got.step) and got.metadata["step"] == got.step
    return _tree(got.variables), got.metadata | {"step": None}


def _write_results(folder):
    content = checksums.add(made.make_results())
    (folder / RESULTS).write_text(json.dumps(content, indent=1))


def _write_task(folder):
    made.write_task(folder / "cub-1.npz", made.make_task(made.make_results()))


def _read_task(folder):
    found = example_tasks.read_task(folder / "cub-1.npz")
    return [x.tobytes() if isinstance(x, np.ndarray) else x for x in found]


def _write_weights(folder):
    metadata = {"arch": "resnet10", "image_size": 84}
    weights.write(folder / "net.safetensors", _VARIABLES, metadata)


def _read_weights(folder):
    variables, metadata = weights.read(folder / "net.safetensors")
    return _tree(variables), metadata


def _write_torch(folder):
    import torch

    tensors = {name: torch.from_numpy(x) for name, x in _WEIGHTS.items()}
    torch.save({"epoch": 3, "state": tensors}, folder / "399.tar")


def _read_torch(folder):
    saved = read_tensors(folder / "399.tar")
    return saved["epoch"], _tree(saved["state"])


def _write_record(folder):
    record_run(folder, _RECORD)


KINDS = {
    "ledger": Kind(_go_on, _go_on),
    "pixel cache": Kind(_pixels, _pixels),
    "feature cache": Kind(_features, _features),
    "checkpoint, to load": Kind(lambda f: _save_steps(f, 1), _load_backbone),
    "checkpoint, to resume": Kind(lambda f: _save_steps(f, 1, 2), _resume),
    "results": Kind(_write_results, lambda f: runs.read(f).results),
    "example task": Kind(_write_task, _read_task),
    "safetensors": Kind(_write_weights, _read_weights),
    "torch file": Kind(_write_torch, _read_torch),
    "record of a run": Kind(_write_record, _write_record),
}
