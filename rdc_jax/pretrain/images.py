"""The images of a run: base classes to train on, held-out classes to judge by."""

import pathlib
from typing import NamedTuple

from rdc_jax.data.open import open_source
from rdc_jax.data.pixels import PixelCache, pixel_cache
from rdc_jax.data.transforms import resize_size
from rdc_jax.pretrain.options import Options


class RunImages(NamedTuple):
    """Decoded images.

    Attributes:
      base: Of the base classes.
      held_out: Of the classes of validation; None without validation.
    """

    base: PixelCache
    held_out: PixelCache | None

    @property
    def fingerprints(self) -> dict[str, str]:
        """Identity of the images' content."""
        prints = {"base": self.base.fingerprint}
        if self.held_out is not None:
            prints["held_out"] = self.held_out.fingerprint
        return prints


def open_images(options: Options, workdir: pathlib.Path) -> RunImages:
    """Find the images and decode them, once, into the cache.

    Args:
      options: Of the run.
      workdir: Of the run.

    Returns:
      The images.

    Raises:
      UserError: They are missing or unreadable.
    """
    cache_dir = options.cache_dir or str(workdir / "cache")
    stored_size = options.stored_size or resize_size(options.image_size)
    held_out = options.validation

    def read(spec: str, split: str) -> PixelCache:
        source = open_source(spec, data_dir=options.data_dir or None, split=split)
        return pixel_cache(source, stored_size, cache_dir)

    return RunImages(
        base=read(options.source, options.split),
        held_out=read(held_out.source or options.source, held_out.split)
        if held_out.episodes
        else None,
    )
