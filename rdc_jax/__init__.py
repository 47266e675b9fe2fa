"""Ranking Distance Calibration for cross-domain few-shot learning, in JAX.

The functions here are jitted and take the arrays of one task; ``over_episodes`` maps
them over many. Arrays that are not traced are checked first. Subpackages
(``rdc_jax.data``, ``rdc_jax.models``, …) load when used.
"""

import functools
import importlib
import importlib.metadata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax as _jax

from rdc_jax.core import advice as _advice
from rdc_jax.core import calibration as _calibration
from rdc_jax.core import losses as _losses
from rdc_jax.core import preparation as _preparation
from rdc_jax.core import prototypes as _prototypes
from rdc_jax.core.batching import over_episodes
from rdc_jax.core.calibration import RDCOutput
from rdc_jax.core.checks import checked_jit as _checked_jit
from rdc_jax.core.params import RDCParams

if TYPE_CHECKING:
    from rdc_jax.rerank.index import rerank

rdc = _checked_jit(_calibration.rdc, "num_classes")
npc = _checked_jit(_prototypes.npc, "num_classes", "normalize")
calibrated_distances = _checked_jit(_calibration.calibrated_distances)
subspace = _checked_jit(_calibration.subspace)
prepare = _checked_jit(_preparation.prepare, "steps")
kl_loss = _checked_jit(_losses.kl_loss, "sign", "include_self")
mse_loss = _checked_jit(_losses.mse_loss)
attention_mask = _checked_jit(_losses.attention_mask)


advise = _advice.advise


@functools.cache
def get(method: str) -> Callable[..., _jax.Array]:
    """Give a method on features by its name, as a jitted function of one episode.

    Example:
      >>> import jax
      >>> import rdc_jax
      >>> support, query = jax.random.normal(jax.random.key(0), (2, 5, 16))
      >>> classify = rdc_jax.get("rdc(k=4;k2=3)")
      >>> classify(support, jax.numpy.arange(5), query, num_classes=5).shape
      (5, 5)

    Args:
      method: As in ``config.methods``, with or without parameters.

    Returns:
      A function of ``support, support_labels, query``, ``num_classes`` and maybe
      ``support_mask``, ``query_mask`` and a ``key`` for what is random; it gives class
      distances ``[q, c]``, of which the smallest is the answer.

    Raises:
      UserError: There is no such method or parameter, or it needs images or a model.
    """
    return importlib.import_module("rdc_jax.methods").jitted(method)


__all__ = [
    "RDCOutput",
    "RDCParams",
    "advise",
    "attention_mask",
    "calibrated_distances",
    "get",
    "kl_loss",
    "mse_loss",
    "npc",
    "over_episodes",
    "prepare",
    "rdc",
    "rerank",
    "subspace",
]

_SUBPACKAGES = (
    *("core", "data", "evaluation", "methods"),
    *("models", "predict", "pretrain", "reporting", "rerank"),
)


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"rdc_jax.{name}")
    if name == "__version__":
        return importlib.metadata.version("rdc-jax")
    raise AttributeError(f"module 'rdc_jax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES, "__version__"})
