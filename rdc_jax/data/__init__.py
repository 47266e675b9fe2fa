"""Data: sets of labelled images, transforms, episodes and caches.

Names are loaded on first use, so that importing one part does not import all.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdc_jax.data.batches import episode_batches as episode_batches
    from rdc_jax.data.batches import training_batches as training_batches
    from rdc_jax.data.datasets import DATASETS as DATASETS
    from rdc_jax.data.decode import UnreadableImage as UnreadableImage
    from rdc_jax.data.episodes import Episodes as Episodes
    from rdc_jax.data.episodes import EpisodeSampler as EpisodeSampler
    from rdc_jax.data.episodes import EpisodeSpec as EpisodeSpec
    from rdc_jax.data.episodes import sample_episodes as sample_episodes
    from rdc_jax.data.features import feature_cache as feature_cache
    from rdc_jax.data.image_set import ImageSet as ImageSet
    from rdc_jax.data.names import MissingSplit as MissingSplit
    from rdc_jax.data.open import open_source as open_source
    from rdc_jax.data.pixels import PixelCache as PixelCache
    from rdc_jax.data.pixels import pixel_cache as pixel_cache

_MODULES = {
    "DATASETS": "datasets",
    "EpisodeSampler": "episodes",
    "EpisodeSpec": "episodes",
    "Episodes": "episodes",
    "ImageSet": "image_set",
    "MissingSplit": "names",
    "PixelCache": "pixels",
    "UnreadableImage": "decode",
    "episode_batches": "batches",
    "feature_cache": "features",
    "open_source": "open",
    "pixel_cache": "pixels",
    "sample_episodes": "episodes",
    "training_batches": "batches",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
