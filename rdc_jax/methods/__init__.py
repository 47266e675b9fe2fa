"""Ways to classify the queries of a task, one small file each, found by name.

``register`` adds a method of your own; see docs/extending.md. Light to import: all
methods come with the first of these names that is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdc_jax.methods.adapt import Adaptation as Adaptation
    from rdc_jax.methods.base import FeatureMethod as FeatureMethod
    from rdc_jax.methods.base import Method as Method
    from rdc_jax.methods.base import Task as Task
    from rdc_jax.methods.base import get_method as get_method
    from rdc_jax.methods.base import jitted as jitted
    from rdc_jax.methods.base import names as names
    from rdc_jax.methods.base import register as register
    from rdc_jax.methods.gradient import GradientAdaptation as GradientAdaptation
    from rdc_jax.runtime.plugins import load_plugin as load_plugin

_BUILT_IN = (
    *("npc", "rdc", "rdc_ft", "finetune"),
    *("gnn", "head_tuning", "matching", "relation", "tpn"),
    *("alpha_tim", "bd_cspn", "label_propagation", "laplacian_shot", "ldp_tr"),
    *("logistic", "npc_prepared", "opta", "paddle", "proto_lp", "pt_map"),
    *("rdc_plus", "rdc_plus_ft", "soft_kmeans", "tcpr", "tim"),
    *("finetune_guo", "finetune_ata", "da", "lmm_pqs", "conft", "nsae", "bsr"),
)
_MODULES = {
    "Adaptation": "methods.adapt",
    "FeatureMethod": "methods.base",
    "GradientAdaptation": "methods.gradient",
    "Method": "methods.base",
    "Task": "methods.base",
    "get_method": "methods.base",
    "jitted": "methods.base",
    "load_plugin": "runtime.plugins",
    "names": "methods.base",
    "register": "methods.base",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in _BUILT_IN:
        importlib.import_module(f"rdc_jax.methods.{module}")
    return getattr(importlib.import_module(f"rdc_jax.{_MODULES[name]}"), name)
