"""What results are a function of: the ledger's header, the provenance in tables."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

import jax

from rdc_jax.evaluation.options import Options
from rdc_jax.evaluation.targets import Target
from rdc_jax.models.model import Model
from rdc_jax.runtime import checksums

_PACKAGES = ("rdc-jax", "jax", "jaxlib", "numpy", "pillow")


def identify(
    config: Mapping[str, Any],
    options: Options,
    backbone: Model,
    targets: list[Target],
) -> dict[str, Any]:
    """Collect what the results depend on.

    Args:
      config: As the run was told.
      options: The same, read.
      backbone: The network.
      targets: The data sets.

    Returns:
      Something JSON can hold.
    """
    device = jax.local_devices()[0]
    return {
        "config": {**config},
        "checkpoint": {
            "fingerprint": backbone.fingerprint,
            "arch": backbone.arch,
            "training": backbone.training,
        },
        "data": {t.source.name: t.source.fingerprint() for t in targets},
        "plugins": {
            path.name: checksums.of_file(path) for path in sorted(options.plugins)
        },
        "versions": {name: _version(name) for name in _PACKAGES},
        "backend": {"platform": device.platform, "device": device.device_kind},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # Run from a source tree.
        return "not installed"
