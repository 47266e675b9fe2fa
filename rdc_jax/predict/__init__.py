"""Classify your own pictures: ``python -m rdc_jax.predict --help``, or from Python.

``RDCClassifier`` follows scikit-learn's conventions; see ``docs/predict.md``.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdc_jax.predict.estimator import RDCClassifier as RDCClassifier

__all__ = ["RDCClassifier"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line does without scikit-learn.
    if name == "RDCClassifier":
        return importlib.import_module("rdc_jax.predict.estimator").RDCClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
