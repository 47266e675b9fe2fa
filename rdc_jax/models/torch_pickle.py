"""Reads the tensors of a torch file without torch, and without running its code.

A torch file is a pickle, and unpickling may call anything. Here only dictionaries and
tensors are let through; a file that asks for more is refused. So is one that would take
far more memory than its size.
"""

import collections
import io
import math
import os
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np

from rdc_jax.runtime.errors import UserError

_DTYPES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
}
# The file format of torch before 1.6 begins with this number.
_MAGIC = 0x1950A86A20F9469CFC6C

Storage = Callable[[], np.ndarray]


def read_tensors(path: str | os.PathLike[str]) -> Any:
    """Read what ``torch.save`` of any torch since 0.4 wrote.

    Returns:
      Dictionaries, lists, numbers, strings, and tensors as NumPy arrays.

    Raises:
      UserError: It is no torch file, is cut short, or holds something else.
    """
    try:
        with open(path, "rb") as file:
            if zipfile.is_zipfile(file):
                return _read_zip(file)
            file.seek(0)
            return _read_legacy(file)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # Damaged pickles raise nearly everything.
        raise UserError(
            f"{path} is no torch checkpoint, or it is damaged: copy it again"
        ) from error


def _read_zip(file: BinaryIO) -> Any:
    with zipfile.ZipFile(file) as archive:
        if any(info.compress_type for info in archive.infolist()):
            raise ValueError("torch compresses nothing: it may be a bomb")
        (index,) = (n for n in archive.namelist() if n.split("/")[1:] == ["data.pkl"])
        folder = index.removesuffix("data.pkl")

        def load(saved_id: tuple[Any, ...]) -> Storage:
            _, dtype, key, _, numel = saved_id
            content = archive.read(f"{folder}data/{key}")
            return lambda: np.frombuffer(content, dtype, numel)

        saved = _unpickle(io.BytesIO(archive.read(index)), load)
        return _materialise(saved, {})


def _read_legacy(file: BinaryIO) -> Any:
    """Several pickles in a row, then the storages, each with its length before it."""
    storages: dict[str, np.ndarray] = {}
    dtypes: dict[str, np.dtype] = {}

    def load(saved_id: tuple[Any, ...]) -> Storage:
        _, dtype, key, _, _, view = saved_id
        if view is not None:
            raise UserError("it holds views of storages: save it with a newer torch")
        dtypes[key] = dtype
        return lambda: storages[key]

    if _unpickle(file, load) != _MAGIC:
        raise ValueError("no torch file")
    _unpickle(file, load)  # The protocol,
    _unpickle(file, load)  # and the machine's word sizes.
    saved = _unpickle(file, load)
    for key in _unpickle(file, load):
        (numel,) = struct.unpack("<q", file.read(8))
        content = file.read(numel * dtypes[key].itemsize)
        storages[key] = np.frombuffer(content, dtypes[key], numel)
    return _materialise(saved, {})


class _Tensor:
    """A tensor whose storage may come later in the file."""

    def __init__(self, storage: Storage, offset: int, size: Any, stride: Any) -> None:
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def array(self) -> np.ndarray:
        flat = self.storage()
        reach = sum((n - 1) * s for n, s in zip(self.size, self.stride, strict=True))
        if 0 in self.size:
            return np.empty(self.size, flat.dtype)
        if self.offset < 0 or min(self.stride, default=0) < 0:
            raise ValueError("a tensor outside of its storage")
        if self.offset + reach >= len(flat) or math.prod(self.size) > len(flat):
            raise ValueError("a tensor outside of its storage")
        strides = [s * flat.itemsize for s in self.stride]
        view = np.lib.stride_tricks.as_strided(flat[self.offset :], self.size, strides)
        return view.copy()


def _unpickle(file: Any, load: Callable[[tuple[Any, ...]], Storage]) -> Any:
    """Load one pickle, after a look at its instructions."""
    start = file.tell()
    for instruction, argument, place in pickletools.genops(file):
        # The unpickler at once makes room for as many objects as are numbered.
        if instruction.name.endswith("PUT") and int(argument or 0) > (place or 0):
            raise ValueError("an object's number is higher than their count")
    file.seek(start)
    return _Unpickler(file, load).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, load: Callable[[tuple[Any, ...]], Storage]) -> None:
        super().__init__(file)
        self._load = load

    def persistent_load(self, saved_id: Any) -> Storage:
        return self._load(saved_id)

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        allowed = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): lambda *parts: _Tensor(*parts[:4]),
            ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
        }
        if (module, name) not in allowed:
            raise UserError(
                f"it asks for {module}.{name}, which is not part of a tensor: nothing "
                "of it was run; save its state_dict alone"
            )
        return allowed[module, name]


def _materialise(value: Any, made: dict[int, Any]) -> Any:
    """Turn tensors into arrays; what is shared is made once, however often it is there.

    A list of ten times a list of ten times a list … would fill the memory otherwise.
    """
    if id(value) in made:
        return made[id(value)]
    result = value
    if isinstance(value, _Tensor):
        result = value.array()
    elif isinstance(value, dict):
        result = {key: _materialise(item, made) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        result = [_materialise(item, made) for item in value]
    made[id(value)] = result
    return result
