"""Small sources that live in memory, for tests of what is built on sources."""

import hashlib

import numpy as np

from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.source import UnreadableImage


class FakeSource:
    """Random images of random sizes; those in ``broken`` cannot be read."""

    def __init__(self, length=50, classes=5, *, name="fake", seed=0, broken=()):
        rng = np.random.default_rng(seed)
        self.name, self.split = name, "test"
        self.class_names = tuple(f"class {i}" for i in range(classes))
        self.labels = (np.arange(length) % classes).astype(np.int32)
        self.sizes = rng.integers(8, 24, (length, 2))
        self.seed, self.broken = seed, frozenset(broken)
        self.decoded = []

    def __len__(self):
        return len(self.labels)

    def image(self, i):
        self.decoded.append(i)
        if i in self.broken:
            raise UnreadableImage(self.locate(i), "truncated")
        rng = np.random.default_rng([self.seed, i])
        return rng.integers(0, 256, (*self.sizes[i], 3), np.uint8)

    def locate(self, i):
        return f"fake/{i}.jpg"

    def fingerprint(self):
        content = f"{self.seed} {self.sizes.tolist()} {self.labels.tolist()}"
        return hashlib.sha256(content.encode()).hexdigest()


class BatchedSource(FakeSource):
    """A source that makes many images at a time, all of one size."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.sizes[:] = 16

    def images(self, indices):
        return np.stack([super(BatchedSource, self).image(int(i)) for i in indices])

    def image(self, i):
        raise AssertionError("images() is there to be used")


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
