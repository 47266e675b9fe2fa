"""Which library a file or a directory is of."""

import os
from typing import Any

from rdc_jax.models import torch_format
from rdc_jax.models.foreign import (
    convolutional,
    files,
    hugging_face,
    open_clip,
    timm,
)
from rdc_jax.models.foreign.convert import Variables, convert
from rdc_jax.runtime.errors import UserError

_LIBRARIES = (convolutional, hugging_face, open_clip, timm)


def read(path: str | os.PathLike[str]) -> tuple[Variables, dict[str, Any]] | None:
    """Read a network that another library has saved.

    Args:
      path: A directory, or a file of weights.

    Returns:
      Variables and metadata as ``read_checkpoint`` gives them; None if the path is no
      such directory.

    Raises:
      UserError: The network is not known, or the file is not what its config says.
    """
    found = files.find(path)
    if found is None:
        return None
    names = found.tensors
    if any(name.endswith("trunk.0.weight") for name in names):
        return torch_format.read(path)  # Whatever the file is called.
    for library in _LIBRARIES:
        if library.recognises(found):
            return convert(library.read(found), found)
    raise UserError(
        f"{path} is no network that is known, by its {len(names)} tensors such as "
        f"{', '.join(list(names)[:2])}: docs/own_model.md lists those that are, and "
        "how to use any other one"
    )
