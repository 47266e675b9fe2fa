"""Backbones as one small file: safetensors, kernels in bfloat16.

    python -m rdc_jax.models.weights CHECKPOINT OUT.safetensors [--image_size=84]

Half the size of the float32 weights, read without torch and orbax, and without running
code from it. The header says which network it is, and holds a digest: the format itself
does not notice a flipped bit. With OUT.tar the command writes a checkpoint for the
field's torch code instead.
"""

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import safetensors
from flax import traverse_util
from safetensors.numpy import save

from rdc_jax.models import torch_format
from rdc_jax.runtime import checksums
from rdc_jax.runtime.arguments import Parser
from rdc_jax.runtime.errors import UserError, guard
from rdc_jax.runtime.files import replacing

SUFFIX = ".safetensors"
# The weights that come with the package, beside this file.
PACKAGED = pathlib.Path(__file__).with_name(f"resnet10_miniimagenet84{SUFFIX}")

_FORMAT = "rdc_jax backbone 1"
_KEPT = (
    *("arch", "arch_options", "source", "num_classes", "method"),
    *("image_size", "preprocessing", "step", "epoch", "score"),
)


def packaged() -> pathlib.Path:
    """Give the weights that come with the package.

    Raises:
      UserError: This copy of the package has none.
    """
    if not PACKAGED.is_file():
        raise UserError(
            f"this copy of rdc_jax has no {PACKAGED.name}: give a checkpoint, such as "
            "--checkpoint with a work directory of run_pretrain.py or a 399.tar"
        )
    return PACKAGED


def write(
    path: str | os.PathLike[str],
    variables: dict[str, Any],
    metadata: dict[str, Any],
) -> None:
    """Write a backbone; a head is left out.

    Kernels are rounded to bfloat16. Vectors (batch-norm scales and statistics) stay in
    float32: they are a thousandth of the file, and rounding them would shift features
    by more than rounding all kernels does.

    Args:
      path: The file; it appears whole or not at all.
      variables: ``params`` and ``batch_stats``, each with a ``backbone``, as
        ``rdc_jax.models.load.read_checkpoint`` gives them.
      metadata: At least ``arch``; what else is worth keeping is kept.

    Raises:
      UserError: The file cannot be written.
    """
    path = pathlib.Path(path)
    inner = {part: tree["backbone"] for part, tree in variables.items()}
    tensors = {
        name: np.ascontiguousarray(leaf, jnp.bfloat16 if np.ndim(leaf) > 1 else None)
        for name, leaf in traverse_util.flatten_dict(inner, sep=".").items()
    }
    kept = {name: metadata[name] for name in _KEPT if metadata.get(name) is not None}
    header = {"format": _FORMAT, "metadata": json.dumps(kept)}
    header["sha256"] = _digest(tensors, header)
    with replacing(path, "choose another place") as file:
        file.write(save(tensors, metadata=header))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a backbone.

    Args:
      path: A file of ``write``.

    Returns:
      Variables in float32, each part with a ``backbone``; and metadata with at least
      ``arch``.

    Raises:
      UserError: It is no such file, or it is damaged.
    """
    try:
        with safetensors.safe_open(path, framework="np") as file:
            header = file.metadata() or {}
            flat = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, safetensors.SafetensorError) as error:
        raise UserError(f"{path} cannot be read: {error}; copy it again") from error
    if header.get("format") != _FORMAT:
        raise UserError(
            f"{path} is no backbone of rdc_jax: write one with "
            "`python -m rdc_jax.models.weights CHECKPOINT OUT`"
        )
    # Files of older versions have no digest.
    if "sha256" in header and header["sha256"] != _digest(flat, header):
        raise UserError(f"{path} is damaged: copy it again")
    whole = {name: leaf.astype(np.float32) for name, leaf in flat.items()}
    inner = traverse_util.unflatten_dict(whole, sep=".")
    variables = {part: {"backbone": tree} for part, tree in inner.items()}
    return variables, json.loads(header["metadata"])


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is one of ``write``, or one that cannot be read."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            return (file.metadata() or {}).get("format") == _FORMAT
    except (OSError, safetensors.SafetensorError):
        return True  # To be refused by ``read``.


def _digest(tensors: dict[str, np.ndarray], header: dict[str, str]) -> str:
    """Identity of all that a reader takes from the file."""
    return checksums.of_json([header["metadata"], checksums.of_tree(tensors)])


def main(argv: Sequence[str] | None = None) -> None:
    """Convert a checkpoint on the command line."""
    from rdc_jax.models.load import read_checkpoint  # it knows this module

    parser = Parser(
        prog="python -m rdc_jax.models.weights",
        description="Write the network of a checkpoint as one file.",
    )
    parser.add_argument("checkpoint", help="a work directory, or a file")
    parser.add_argument(
        "out",
        help=f"the file to write: *{SUFFIX} for a small file of the backbone, "
        f"*{torch_format.SUFFIX} for the field's torch code",
    )
    parser.add_argument(
        "--image_size", type=int, help="pixels it was trained at, if it does not say"
    )
    arguments = parser.parse(argv)
    out = pathlib.Path(arguments.out)
    if out.suffix not in (SUFFIX, torch_format.SUFFIX):
        raise UserError(
            f"{out} must end in {SUFFIX} or {torch_format.SUFFIX}: "
            "files are recognised by that"
        )
    variables, metadata = read_checkpoint(arguments.checkpoint)
    arch = metadata["arch"]
    if out.suffix == torch_format.SUFFIX:
        epoch = metadata.get("epoch", 0)
        torch_format.write(out, variables, arch=arch, epoch=epoch)
    else:
        if arguments.image_size:
            metadata = {**metadata, "image_size": arguments.image_size}
        write(out, variables, metadata)
    print(f"{out}: {arch}, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    guard(main)
