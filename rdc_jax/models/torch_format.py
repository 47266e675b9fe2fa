"""Checkpoints of the few-shot field's torch code, in and out.

They are ``torch.save({"epoch", "state"})`` of a network whose trunk is a sequence:
0 convolution, 1 batch norm, 4 and up the blocks (``399.tar`` of CrossDomainFewShot and
its successors).
"""

import os
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from flax import traverse_util

from rdc_jax.models.backbones import create
from rdc_jax.models.torch_pickle import read_tensors
from rdc_jax.runtime.errors import UserError, first_line

Variables = dict[str, Any]

SUFFIX = ".tar"  # They are no tar archives.

_ARCHITECTURES = {4: "resnet10", 8: "resnet18"}  # By number of blocks.
_FIRST_BLOCK = 4
_PARTS = {
    "conv1": "C1",
    "norm1": "BN1",
    "conv2": "C2",
    "norm2": "BN2",
    "shortcut_conv": "shortcut",
    "shortcut_norm": "BNshortcut",
}
_NORM = {
    ("params", "scale"): "weight",
    ("params", "bias"): "bias",
    ("batch_stats", "mean"): "running_mean",
    ("batch_stats", "var"): "running_var",
}


def read(path: str | os.PathLike[str]) -> tuple[Variables, dict[str, Any]]:
    """Read a checkpoint, without torch and without running code from it.

    Args:
      path: The file. Keys may lack the prefix ``feature.`` or have ``module.``; the
        classifier is read if it is linear.

    Returns:
      Variables as ``rdc_jax.models.heads.Classifier`` has them, and metadata: ``arch``,
      ``epoch`` if there is one, ``num_classes`` if there is a classifier.

    Raises:
      UserError: It is no such checkpoint.
    """
    saved = read_tensors(path)
    state = _state(saved, path)
    blocks = {key.split(".")[1] for key in state if key.endswith(".C1.weight")}
    if len(blocks) not in _ARCHITECTURES:
        known = ", ".join(f"{n} ({arch})" for n, arch in _ARCHITECTURES.items())
        raise UserError(f"{path} has {len(blocks)} blocks; known are {known}")
    arch = _ARCHITECTURES[len(blocks)]
    leaves: dict[tuple[str, ...], np.ndarray] = {}
    for (collection, *place), want in _leaves(arch):
        key = f"trunk.{_torch_key(collection, place)}"
        if key not in state:
            raise UserError(f"{path} lacks {key} of a {arch}: it is another network")
        value = _from_torch(state[key])
        if value.shape != want.shape:
            raise UserError(
                f"{path}: {key} is {state[key].shape}, not that of a {arch}: it is "
                "another network"
            )
        leaves[(collection, "backbone", *place)] = value
    metadata: dict[str, Any] = {"arch": arch}
    if isinstance(saved.get("epoch"), int):
        metadata["epoch"] = saved["epoch"]
    weight, bias = state.get("classifier.weight"), state.get("classifier.bias")
    if weight is not None and bias is not None:
        leaves["params", "head", "kernel"] = _from_torch(weight)
        leaves["params", "head", "bias"] = _from_torch(bias)
        metadata["num_classes"] = len(bias)
    return traverse_util.unflatten_dict(leaves), metadata


def write(
    path: str | os.PathLike[str], variables: Variables, *, arch: str, epoch: int = 0
) -> None:
    """Write a checkpoint that the field's torch code reads; needs torch.

    A linear head becomes its classifier, any other is left out.

    Args:
      path: The file.
      variables: As ``read`` gives them.
      arch: ``resnet10`` or ``resnet18``.
      epoch: To note in it.

    Raises:
      UserError: torch is missing, the architecture has no such format, or the file
        cannot be written.
    """
    if arch not in _ARCHITECTURES.values():
        known = " and ".join(_ARCHITECTURES.values())
        raise UserError(f"torch files are known for {known}, not for {arch}")
    try:
        import torch
    except ImportError:
        raise UserError(
            "writing torch files needs torch: pip install 'rdc-jax[torch]'"
        ) from None
    state: dict[str, Any] = {}
    flat = traverse_util.flatten_dict(variables)
    for (collection, *place), _ in _leaves(arch):
        key = f"feature.trunk.{_torch_key(collection, place)}"
        leaf = flat[(collection, "backbone", *place)]
        state[key] = torch.from_numpy(_to_torch(leaf))
        if key.endswith("running_var"):
            counter = key.replace("running_var", "num_batches_tracked")
            state[counter] = torch.tensor(0)
    head = variables["params"].get("head", {})
    if head.keys() == {"kernel", "bias"}:  # Others have no place in such a file.
        state["classifier.weight"] = torch.from_numpy(_to_torch(head["kernel"]))
        state["classifier.bias"] = torch.from_numpy(_to_torch(head["bias"]))
    try:
        torch.save({"epoch": epoch, "state": state}, path)
    except (OSError, RuntimeError) as error:
        raise UserError(f"cannot write {path}: {first_line(error)}") from error


def _state(saved: Any, path: Any) -> dict[str, np.ndarray]:
    """The tensors by name, prefixes removed."""
    if isinstance(saved, dict):
        saved = saved.get("state", saved.get("state_dict", saved))
    tensors = saved.items() if isinstance(saved, dict) else ()
    state = {
        str(key).removeprefix("module.").removeprefix("feature."): value
        for key, value in tensors
        if isinstance(value, np.ndarray)
    }
    if "trunk.0.weight" not in state:
        raise UserError(
            f"{path} has no trunk.0.weight: it is no checkpoint of a ResNet of the "
            "few-shot field"
        )
    return state


def _leaves(arch: str) -> Iterator[tuple[tuple[str, ...], jax.ShapeDtypeStruct]]:
    """Paths of a backbone's variables, ``(collection, module, …, name)``."""
    image = jax.ShapeDtypeStruct((1, 32, 32, 3), np.float32)
    tree = jax.eval_shape(create(arch).init, jax.random.key(0), image)
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        yield tuple(entry.key for entry in path), leaf


def _torch_key(collection: str, place: list[str]) -> str:
    """``("params", ["block1", "conv1", "kernel"])`` is ``4.C1.weight``."""
    *modules, name = place
    leaf = "weight" if name == "kernel" else _NORM[collection, name]
    if modules[0].startswith("block"):
        index = int(modules[0].removeprefix("block")) - 1 + _FIRST_BLOCK
        return f"{index}.{_PARTS[modules[1]]}.{leaf}"
    return f"{0 if modules[0] == 'stem_conv' else 1}.{leaf}"


def _from_torch(value: np.ndarray) -> np.ndarray:
    """OIHW to HWIO, ``[out, in]`` to ``[in, out]``, in float32."""
    axes = {4: (2, 3, 1, 0), 2: (1, 0)}.get(value.ndim, range(value.ndim))
    return np.ascontiguousarray(value.transpose(*axes), np.float32)


def _to_torch(value: Any) -> np.ndarray:
    value = np.asarray(value, np.float32)
    axes = {4: (3, 2, 0, 1), 2: (1, 0)}.get(value.ndim, range(value.ndim))
    return np.array(value.transpose(*axes), order="C")
