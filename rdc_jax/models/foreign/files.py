"""Tensors and settings of other libraries, from a directory or a file."""

import functools
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import safetensors

from rdc_jax.models.torch_pickle import read_tensors
from rdc_jax.runtime.errors import UserError

# In the order of preference: the safe format first.
_WEIGHTS = (
    "model.safetensors.index.json",
    "model.safetensors",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "open_clip_pytorch_model.bin",
)
_CONFIGS = ("config.json", "open_clip_config.json")
_PROCESSOR = "preprocessor_config.json"
_TORCH = (".bin", ".pth", ".pt", ".tar")
_WRAPPERS = ("state_dict", "model", "teacher", "state", "params", "model_state")


class Tensors(Mapping[str, np.ndarray]):
    """Arrays by name, each read when it is asked for.

    Args:
      readers: What gives each.
    """

    def __init__(self, readers: Mapping[str, Callable[[], np.ndarray]]) -> None:
        self._readers = readers

    def __getitem__(self, name: str) -> np.ndarray:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, name: object) -> bool:
        return name in self._readers

    def without(self, *prefixes: str) -> "Tensors":
        """The same with the prefixes taken off, where a name begins so."""
        renamed = {}
        for name, read in self._readers.items():
            for prefix in prefixes:
                name = name.removeprefix(prefix)
            renamed[name] = read
        return Tensors(renamed)

    def below(self, prefix: str) -> "Tensors":
        """Those whose names begin so, without it."""
        readers = self._readers.items()
        return Tensors(
            {n.removeprefix(prefix): r for n, r in readers if n.startswith(prefix)}
        )


class Files(NamedTuple):
    """What a library has saved of a network.

    Attributes:
      path: As it was given, for messages.
      tensors: The weights.
      config: Of the network; empty for a file of weights alone.
      processor: Of its images, if there is a file of that.
    """

    path: pathlib.Path
    tensors: Tensors
    config: dict[str, Any]
    processor: dict[str, Any]


def find(path: str | os.PathLike[str]) -> Files | None:
    """Find weights and settings; None if the path is no such directory or file.

    Args:
      path: A directory with ``config.json`` (Hugging Face, timm) or
        ``open_clip_config.json`` and weights beside it; or a file of weights, with
        settings beside it if they are there.

    Raises:
      UserError: A directory has a config and no weights, or a file cannot be read.
    """
    path = pathlib.Path(path)
    if not path.exists():  # As a work directory's ``latest``.
        return None
    folder = path if path.is_dir() else path.parent
    configs = [folder / name for name in _CONFIGS if (folder / name).is_file()]
    if path.is_dir() and not configs:
        return None
    weights = path if path.is_file() else _weights_of(path)
    readers = {**_readers(weights)}
    ours = path.is_dir() or path.name in _WEIGHTS  # A file may lie beside others.
    config = _json(configs[0]) if configs and ours else {}
    processor = folder / _PROCESSOR
    known = _json(processor) if ours and processor.is_file() else {}
    return Files(path, Tensors(readers), config, known)


def _weights_of(folder: pathlib.Path) -> pathlib.Path:
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    raise UserError(
        f"{folder} has a config and no weights: put {_WEIGHTS[1]} beside it"
    )


def _readers(path: pathlib.Path) -> Mapping[str, Callable[[], np.ndarray]]:
    if path.name.endswith(".index.json"):
        shards = sorted(set(_json(path)["weight_map"].values()))
        parts = [_readers(path.with_name(pathlib.PurePath(s).name)) for s in shards]
        return {name: read for part in parts for name, read in part.items()}
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if path.suffix not in _TORCH:
        raise UserError(
            f"{path} is no file of weights: give *.safetensors or *{', *'.join(_TORCH)}"
        )
    saved = read_tensors(path)
    while isinstance(saved, dict):
        inner = [saved[name] for name in _WRAPPERS if isinstance(saved.get(name), dict)]
        if not inner:
            break
        saved = inner[0]
    arrays = saved.items() if isinstance(saved, dict) else ()
    return {
        str(name): functools.partial(_same, value)
        for name, value in arrays
        if isinstance(value, np.ndarray)
    }


def _safetensors(path: pathlib.Path) -> Mapping[str, Callable[[], np.ndarray]]:
    try:
        file = safetensors.safe_open(path, framework="np")
        names = list(file.keys())
    except (OSError, safetensors.SafetensorError) as error:
        raise UserError(f"{path} cannot be read: {error}; copy it again") from error
    return {name: functools.partial(file.get_tensor, name) for name in names}


def _json(path: pathlib.Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}; copy it again") from error
    return found if isinstance(found, dict) else {}


def _same(array: np.ndarray) -> np.ndarray:
    return array
