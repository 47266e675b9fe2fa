"""What results are a function of: the ledger's header, the provenance in tables."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

import jax

from rdc_jax.evaluation.datasets import DataSet
from rdc_jax.evaluation.options import Options
from rdc_jax.models.model import Model
from rdc_jax.runtime import checksums

_PACKAGES = ("rdc-jax", "jax", "jaxlib", "numpy", "pillow")


def identify(
    config: Mapping[str, Any],
    options: Options,
    model: Model,
    datasets: list[DataSet],
) -> dict[str, Any]:
    """Collect what the results depend on, as far as it is the same for all methods.

    Returns:
      Something JSON can hold.
    """
    device, seen = jax.local_devices()[0], model.preprocessing
    data: dict[str, str] = {}
    for dataset in datasets:
        data |= dataset.fingerprints
    return {
        "config": {**config, "preprocessing": _given(config["preprocessing"])},
        "checkpoint": {
            "fingerprint": model.fingerprint,
            "arch": model.arch,
            "training": model.training,
            **({"preprocessing": str(seen)} if seen.noted.keys() - {"size"} else {}),
        },
        **({"choice": options.choice} if options.choice else {}),
        "data": data,
        "plugins": {
            path.name: checksums.of_file(path) for path in sorted(options.plugins)
        },
        "versions": {name: _version(name) for name in _PACKAGES},
        "backend": {"platform": device.platform, "device": device.device_kind},
    }


def _given(texts: Mapping[str, str]) -> dict[str, str]:
    """What is not left to the checkpoint."""
    return {name: text for name, text in texts.items() if text}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # Run from a source tree.
        return "not installed"
