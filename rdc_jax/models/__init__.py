"""Backbones, heads and their checkpoints.

Light to import: each name brings its module, and Flax and orbax with it, when it is
first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdc_jax.models.backbones import BACKBONES as BACKBONES
    from rdc_jax.models.backbones import create as create
    from rdc_jax.models.decoders import DECODERS as DECODERS
    from rdc_jax.models.heads import HEADS as HEADS
    from rdc_jax.models.load import from_function as from_function
    from rdc_jax.models.load import load_backbone as load_backbone
    from rdc_jax.models.load import load_model as load_model
    from rdc_jax.models.model import Model as Model
    from rdc_jax.models.preprocessing import Preprocessing as Preprocessing

_MODULES = {
    "BACKBONES": "backbones",
    "DECODERS": "decoders",
    "HEADS": "heads",
    "Model": "model",
    "Preprocessing": "preprocessing",
    "create": "backbones",
    "from_function": "load",
    "load_backbone": "load",
    "load_model": "load",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"rdc_jax.models.{_MODULES[name]}")
    return getattr(module, name)
