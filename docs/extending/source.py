"""A data source of your own: stripes of eight widths, drawn when they are read.

python run_eval.py --config.plugins=source.py --config.datasets=stripes:40
python -m rdc_jax.data verify stripes --plugins=source.py
"""

import os

import numpy as np
from PIL import Image

from rdc_jax.data import ImageSet, MissingSplit, register_source

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)  # pixels: one class each
SIZE = 32


@register_source("stripes")
def open_stripes(
    argument: str, *, split: str, data_dir: str | os.PathLike[str] | None
) -> ImageSet:
    """Stripes of eight widths; stripes:40 has 40 images of each, not 20."""
    if split not in ("test", "all"):
        raise MissingSplit(f"stripes has no {split} split, only test")
    per_class = int(argument or 20)
    labels = np.repeat(np.arange(len(WIDTHS)), per_class)

    def read(i: int) -> Image.Image:
        """Draw image ``i``: stripes in a random place, colour and direction."""
        rng = np.random.default_rng(i)
        along = np.arange(SIZE) + rng.integers(2 * SIZE)
        stripes_w = along // WIDTHS[labels[i]] % 2
        colours = rng.integers(0, 256, (2, 3))
        pixels_hwc = np.broadcast_to(colours[stripes_w], (SIZE, SIZE, 3))
        if rng.random() < 0.5:
            pixels_hwc = pixels_hwc.swapaxes(0, 1)
        return Image.fromarray(pixels_hwc.astype(np.uint8))

    return ImageSet(
        name="stripes",
        split="test",
        ids=[f"{WIDTHS[label]} px/{i}" for i, label in enumerate(labels)],
        labels=labels,
        class_names=tuple(f"{width} px" for width in WIDTHS),
        read=read,
        # Says what the pixels are made from: caches are used again where it is equal.
        identity=f"stripes, version 1, {per_class} a class",
    )
