"""Data: sources of labelled images, transforms, episodes and caches.

Names are loaded on first use, so that importing one part does not import all.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdc_jax.data.batches import episode_batches as episode_batches
    from rdc_jax.data.batches import training_batches as training_batches
    from rdc_jax.data.datasets import DATASETS as DATASETS
    from rdc_jax.data.episodes import Episodes as Episodes
    from rdc_jax.data.episodes import EpisodeSampler as EpisodeSampler
    from rdc_jax.data.episodes import EpisodeSpec as EpisodeSpec
    from rdc_jax.data.episodes import sample_episodes as sample_episodes
    from rdc_jax.data.features import feature_cache as feature_cache
    from rdc_jax.data.manifest import make_manifest as make_manifest
    from rdc_jax.data.manifest import read_manifest as read_manifest
    from rdc_jax.data.opening import open_source as open_source
    from rdc_jax.data.pixels import PixelCache as PixelCache
    from rdc_jax.data.pixels import pixel_cache as pixel_cache
    from rdc_jax.data.source import Source as Source
    from rdc_jax.data.source import UnreadableImage as UnreadableImage

_HOMES = {
    "DATASETS": "datasets",
    "EpisodeSampler": "episodes",
    "EpisodeSpec": "episodes",
    "Episodes": "episodes",
    "PixelCache": "pixels",
    "Source": "source",
    "UnreadableImage": "source",
    "episode_batches": "batches",
    "feature_cache": "features",
    "make_manifest": "manifest",
    "open_source": "opening",
    "pixel_cache": "pixels",
    "read_manifest": "manifest",
    "sample_episodes": "episodes",
    "training_batches": "batches",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
