"""Small sources that live in memory, for tests of what is built on sources."""

import numpy as np
from PIL import Image

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.pixels import PixelCache


class FakeSource(ImageSet):
    """Random images of random sizes; those in ``broken`` cannot be read."""

    def __init__(self, length=50, classes=5, *, name="fake", seed=0, broken=()):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(8, 24, (length, 2))
        labels = (np.arange(length) % classes).astype(np.int32)
        super().__init__(
            name=name,
            split="test",
            ids=[f"fake/{i}.jpg" for i in range(length)],
            labels=labels,
            class_names=tuple(f"class {i}" for i in range(classes)),
            read=self._read,
            identity=f"{seed} {sizes.tolist()} {labels.tolist()}",
        )
        vars(self).update(sizes=sizes, seed=seed, broken=frozenset(broken), decoded=[])

    def _read(self, i):
        self.decoded.append(i)
        if i in self.broken:
            raise UnreadableImage(self.locate(i), "truncated")
        rng = np.random.default_rng([self.seed, i])
        return Image.fromarray(rng.integers(0, 256, (*self.sizes[i], 3), np.uint8))


def fake_pixels(length=50, classes=5, *, size=8, fingerprint="ab12"):
    """Images whose every pixel is the image's number (below 256)."""
    rows = np.arange(length)
    images = np.broadcast_to(rows[:, None, None, None], (length, size, size, 3))
    return PixelCache(
        name="fake",
        split="train",
        class_names=tuple(f"class {i}" for i in range(classes)),
        images=images.astype(np.uint8),
        labels=(rows % classes).astype(np.int32),
        aspects=np.linspace(0.5, 2, length, dtype=np.float32),
        rows=rows,
        fingerprint=fingerprint,
    )
