"""Which weights of a network train on a task: by name, whole or as low-rank changes."""

import fnmatch
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import traverse_util
from jaxtyping import Array, Key

from rdc_jax.runtime.errors import UserError

Params = dict[str, Any]

_DOWN, _UP = "lora_down", "lora_up"
_FIRST = 0.02  # Deviation of the first factor; the second one begins at zero.


def divide(
    params: Params, layers: Sequence[str], rank: int, key: Key[Array, ""]
) -> tuple[Params, Params]:
    """Take what trains out of a network's parameters.

    Example:
      >>> params = {"block1": {"norm": {"scale": jnp.ones(2)}}, "head": {}}
      >>> frozen, trained = divide(params, ["*norm"], 0, jax.random.key(0))
      >>> trained
      {'block1': {'norm': {'scale': Array([1., 1.], dtype=float32)}}}

    Args:
      params: By module.
      layers: Names of modules, dots between those inside of each other, with ``*`` for
        any letters: ``block12``, ``*.attention``, ``*norm*``. Empty: all of them;
        ``none`` alone: none.
      rank: 0: what trains are the parameters themselves. Else the matrices among them
        stay, and two factors of this rank, whose product is added, train in their place
        (LoRA, Hu et al. 2022).
      key: Of the factors.

    Returns:
      What stays, and what trains; ``merge`` puts them together.

    Raises:
      UserError: No module has such a name.
    """
    flat = traverse_util.flatten_dict(params)
    chosen = _chosen(params, list(flat), layers)
    trained: dict[tuple[str, ...], Array] = {}
    for number, (path, value) in enumerate(flat.items()):
        if path not in chosen:
            continue
        if rank and path[-1] == "kernel" and value.ndim == 2:
            inputs, outputs = value.shape
            noise = jax.random.normal(jax.random.fold_in(key, number), (inputs, rank))
            trained[(*path[:-1], _DOWN)] = _FIRST * noise.astype(value.dtype)
            trained[(*path[:-1], _UP)] = jnp.zeros((rank, outputs), value.dtype)
        else:
            trained[path] = value
    frozen = {path: value for path, value in flat.items() if path not in trained}
    return traverse_util.unflatten_dict(frozen), traverse_util.unflatten_dict(trained)


def frozen_stages(params: Params, layers: Sequence[str], stages: Sequence[str]) -> int:
    """How many of a network's stages, the first ones, have nothing that trains.

    Example:
      >>> params = {"stem_conv": {"kernel": 0}, "block1": {"kernel": 0}}
      >>> frozen_stages(params, ["block1"], ["stem", "block1"])
      1

    Args:
      params: By module; a stage's are called as it is, maybe with more after a line.
      layers: As of ``divide``.
      stages: In the order in which they run.
    """
    paths = list(traverse_util.flatten_dict(params))
    chosen = {path[0] for path in _chosen(params, paths, layers)}
    for count, stage in enumerate(stages):
        if any(name == stage or name.startswith(f"{stage}_") for name in chosen):
            return count
    return len(stages)


def merge(frozen: Params, trained: Params) -> Params:
    """Put a network's parameters together again."""
    flat = {**traverse_util.flatten_dict(frozen), **traverse_util.flatten_dict(trained)}
    for path in [path for path in flat if path[-1] == _DOWN]:
        *module, _ = path
        down, up = flat.pop(path), flat.pop((*module, _UP))
        kernel = (*module, "kernel")
        flat[kernel] = flat[kernel] + down @ up
    return traverse_util.unflatten_dict(flat)


def _chosen(
    params: Params, paths: list[tuple[str, ...]], layers: Sequence[str]
) -> set[tuple[str, ...]]:
    """Paths of the parameters that the names stand for."""
    if tuple(layers) in ((), ("none",)):
        return set() if layers else set(paths)
    found: set[tuple[str, ...]] = set()
    for layer in layers:
        matching = {path for path in paths if _matches(".".join(path), layer)}
        if not matching:
            raise UserError(
                f"config.finetune.layers has {layer!r}: the network's modules are "
                f"{', '.join(sorted(params))}; inside of them, as in "
                f"{'.'.join(sorted(paths)[0])}"
            )
        found |= matching
    return found


def _matches(path: str, layer: str) -> bool:
    """Whether a parameter is in a module."""
    return fnmatch.fnmatchcase(path, layer) or fnmatch.fnmatchcase(path, f"{layer}.*")
