"""Ranking Distance Calibration on fixed features."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core import calibration
from rdc_jax.methods.registry import Episode, Settings, register


@register("rdc_original", title="RDC w/o subspace", transductive=True, calibrates=True)
def rdc_original(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """Distances calibrated in the original space alone (Eq. 3-8)."""
    params = dataclasses.replace(settings.rdc, subspace="none")
    return calibration.rdc(
        *episode, settings.num_classes, params=params
    ).class_distances


@register("rdc", title="RDC", transductive=True, calibrates=True)
def rdc(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """Distances calibrated in the original space and in the task's subspace."""
    return calibration.rdc(
        *episode, settings.num_classes, params=settings.rdc
    ).class_distances
