"""The feature function of any checkpoint."""

import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from rdc_jax.models import create, torch_format, weights
from rdc_jax.models.checkpoints import load_variables
from rdc_jax.runtime import checksums

# What checkpoints note of their training, in words.
_TRAINING = {
    "source": "on {}",
    "num_classes": "{} classes",
    "method": "{}",
    "image_size": "{} px",
    "epoch": "epoch {}",
    "step": "step {:,}",
    "score": "validation {:.2f}%",
}


class Backbone:
    """A network with its weights: ``backbone(images)`` gives features.

    Attributes:
      model: The linen module.
      variables: Its ``params`` and ``batch_stats``, without a head.
      metadata: What the checkpoint notes: ``arch`` and, where known, ``source``,
        ``image_size``, ``step``, ``config``, …
      fingerprint: Digest of architecture and weights.
    """

    def __init__(
        self, model: Any, variables: dict[str, Any], metadata: dict[str, Any]
    ) -> None:
        self.model = model
        self.variables = jax.tree.map(jnp.asarray, variables)
        self.metadata = metadata
        digest = checksums.of_tree(variables)
        self.fingerprint = checksums.of_json([self.arch, digest])
        self._features = jax.jit(
            lambda variables, images: model.apply(variables, images, train=False)[0]
        )

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        return self.metadata["arch"]

    @property
    def training(self) -> str:
        """How it was trained, as far as the checkpoint tells; empty if it does not."""
        return ", ".join(
            text.format(self.metadata[name])
            for name, text in _TRAINING.items()
            if self.metadata.get(name) is not None
        )

    def __call__(self, images: Float[ArrayLike, "b h w 3"]) -> Float[Array, "b d"]:
        """Compute the features of normalised images of any size; jitted."""
        return self._features(self.variables, images)


def load_backbone(
    path: str | os.PathLike[str], *, dtype: Any = "float32", conv: str = "auto"
) -> Backbone:
    """Load the feature function of a checkpoint.

    Example:
      >>> import numpy as np
      >>> from rdc_jax import models
      >>> from rdc_jax.models import weights
      >>> backbone = models.load_backbone(weights.packaged())
      >>> backbone(np.zeros((2, 32, 32, 3), np.float32)).shape
      (2, 512)

    Args:
      path: A work directory of ``run_pretrain.py``, its ``checkpoints``, one step of
        it, a torch file of the field (``399.tar``), or a ``.safetensors`` file of
        ``rdc_jax.models.weights``.
      dtype: Of the computation.
      conv: See ``rdc_jax.models.create``.

    Returns:
      A jitted function from normalised images ``[b, h, w, 3]`` to features ``[b, d]``.

    Raises:
      UserError: There is no readable checkpoint.
    """
    variables, metadata = read_checkpoint(path)
    model = create(metadata["arch"], dtype=dtype, conv=conv)
    inner = {name: tree["backbone"] for name, tree in variables.items()}
    return Backbone(model, inner, metadata)


def read_checkpoint(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read variables and metadata from an orbax directory or a file.

    Args:
      path: As in ``load_backbone``.

    Returns:
      ``params`` and ``batch_stats``, each with a ``backbone`` and maybe a ``head``; and
      metadata with at least ``arch``.

    Raises:
      UserError: There is no readable checkpoint.
    """
    if pathlib.Path(path).is_file():
        is_ours = pathlib.Path(path).suffix == weights.SUFFIX
        return weights.read(path) if is_ours else torch_format.read(path)
    return load_variables(pathlib.Path(path))
