"""Models from whatever names one: a run, a file, a directory, a function of a file."""

import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from rdc_jax.models import torch_format, weights
from rdc_jax.models.foreign import read as foreign
from rdc_jax.models.host import Function, HostNetwork, name_of
from rdc_jax.models.model import Model, Spec, Variables, as_backbone
from rdc_jax.models.preprocessing import FIELD, Preprocessing
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.plugins import load_object

_FIELD_SIZE = 224  # What networks that note nothing were trained at.


def load_model(
    path: str | os.PathLike[str], *, dtype: Any = "float32", conv: str = "auto"
) -> Model:
    """Load all that a checkpoint has: backbone, head, decoder, metadata.

    Args and errors are those of ``load_backbone``.
    """
    dtype = dtype if isinstance(dtype, str) else jnp.dtype(dtype).name
    if _is_function(path):
        return _call(str(path))
    variables, metadata = read_checkpoint(path)
    params = variables["params"]
    head, options = metadata.get("head"), metadata.get("head_options", {})
    if head is None and "head" in params:  # A classifier; older ones note no name.
        head, options = "linear", {"num_classes": params["head"]["kernel"].shape[1]}
    noted = {"size": metadata.get("image_size"), **metadata.get("preprocessing", {})}
    spec = Spec(
        metadata["arch"],
        arch_options=_options(metadata.get("arch_options", {})),
        dtype=dtype,
        conv=conv,
        head=head,
        head_options=_options(options),
        decoder=metadata.get("decoder"),
        decoder_options=_options(metadata.get("decoder_options", {})),
        preprocessing=Preprocessing.of_noted(noted),
    )
    model = Model(spec, jax.tree.map(jnp.asarray, variables), metadata)
    _ = model.backbone  # An unknown dtype or conv raises now.
    return model


def load_backbone(
    path: str | os.PathLike[str], *, dtype: Any = "float32", conv: str = "auto"
) -> Model:
    """Load the feature function of a checkpoint.

    Example:
      >>> import numpy as np
      >>> from rdc_jax import models
      >>> backbone = models.load_backbone("packaged")
      >>> backbone(np.zeros((2, 32, 32, 3), np.float32)).shape
      (2, 512)

    Args:
      path: A work directory of ``run_pretrain.py``, its ``checkpoints``, one step of
        it, a torch file of the field (``399.tar``), a ``.safetensors`` file of
        ``rdc_jax.models.weights``, ``packaged``: the weights of this package; a
        directory of Hugging Face, timm or open_clip, or a file of weights in their
        names; or ``FILE.py:NAME``: a function of that file, which gives a ``Model`` or
        a function from images to features.
      dtype: Type of the computation.
      conv: See ``rdc_jax.models.create``.

    Returns:
      A model without head: a jitted function from images ``[b, h, w, 3]``, normalised
      by ImageNet's statistics, to features ``[b, d]``.

    Raises:
      UserError: There is no readable checkpoint.
    """
    model = load_model(path, dtype=dtype, conv=conv)
    spec = model.spec
    if not (spec.head or spec.decoder):
        return model
    return Model(
        Spec(
            spec.arch,
            spec.arch_options,
            dtype=spec.dtype,
            conv=spec.conv,
            preprocessing=spec.preprocessing,
        ),
        as_backbone(model.variables_of("backbone")),
        model.metadata,
    )


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[Variables, dict[str, Any]]:
    """Read variables and metadata, at least ``arch``, from a directory or a file.

    The variables are those of ``Model``; arguments and errors of ``load_backbone``.
    """
    if path == "packaged":
        path = weights.packaged()
    if _is_function(path):
        raise UserError(f"{path} is a function, not a file with weights")
    path = pathlib.Path(path)
    if path.suffix == torch_format.SUFFIX and path.is_file():
        return torch_format.read(path)
    if path.suffix == weights.SUFFIX and weights.is_ours(path):
        return weights.read(path)
    if (found := foreign.read(path)) is not None:
        return found
    from rdc_jax.models.checkpoints import load_variables  # Orbax is slow to import.

    return load_variables(path)


def from_function(
    function: Function,
    *,
    fingerprint: str | None = None,
    preprocessing: Preprocessing = FIELD,
    name: str | None = None,
) -> Model:
    """Make a model of any function from images to features.

    Example:
      >>> import numpy as np
      >>> from rdc_jax import models
      >>> model = models.from_function(lambda images: images.mean(axis=(1, 2)))
      >>> model(np.zeros((2, 32, 32, 3), np.float32)).shape
      (2, 3)

    Args:
      function: From images ``[b, h, w, 3]`` in float32, a NumPy array, to ``[b, d]``,
        as anything that NumPy reads. It treats each image by itself.
      fingerprint: Something that changes when the weights do, so that kept features are
        made anew; None: what the function makes of two fixed images.
      preprocessing: What is done to images before the function sees them.
      name: What tables call it; None: the function's name.
    """
    name = name or name_of(function)
    network = HostNetwork(function, preprocessing.size or _FIELD_SIZE, fingerprint)
    spec = Spec(name, network=network, preprocessing=preprocessing)
    return Model(spec, {}, {"arch": name, "image_size": preprocessing.size})


def _is_function(path: str | os.PathLike[str]) -> bool:
    file, colon, name = str(path).rpartition(":")
    return bool(colon) and file.endswith(".py") and name.isidentifier()


def _call(path: str) -> Model:
    """The model that a function of a Python file gives."""
    try:
        made = load_object(path)()
    except ImportError as error:
        raise UserError(
            f"{path} failed with {type(error).__name__}: {error}"
        ) from error
    if isinstance(made, Model):
        return made
    if not callable(made):
        raise UserError(
            f"{path} gives a {type(made).__name__}: it must give a function from "
            "images to features, or a Model"
        )
    return from_function(made)


def _options(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Options of JSON as a value that jit can tell from another one."""
    return tuple(
        (name, tuple(value) if isinstance(value, list) else value)
        for name, value in sorted(options.items())
    )
