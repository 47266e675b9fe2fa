"""The synthetic domains as a data source."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Int32, UInt8

from rdc_jax.data.source import as_labels, canonical_split
from rdc_jax.data.synthetic.render import BLOCK, DOMAINS, VERSION, render_block
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
class SyntheticSource:
    """Images of one split of a synthetic domain, rendered when they are asked for.

    Attributes:
      name: The domain.
      split: ``train``, ``val``, ``test`` or ``all``.
      size: Edge of the images in pixels.
      seed: Seed of the images; classes are the same under every seed.
      per_class: Images of each class. Fewer are the first ones of more.
    """

    name: str
    split: str
    size: int
    seed: int
    per_class: int

    @functools.cached_property
    def _classes(self) -> tuple[int, ...]:
        return DOMAINS[self.name].classes(self.split)

    @functools.cached_property
    def class_names(self) -> tuple[str, ...]:
        """One name a class."""
        names = DOMAINS[self.name].class_names
        return tuple(names[label] for label in self._classes)

    @functools.cached_property
    def labels(self) -> Int32[np.ndarray, " len"]:
        """The class of each image, an index into ``class_names``."""
        return as_labels(np.repeat(np.arange(len(self._classes)), self.per_class))

    def __len__(self) -> int:
        return len(self._classes) * self.per_class

    def image(self, i: int) -> UInt8[np.ndarray, "h w 3"]:
        """Image ``i``, read-only."""
        label, index = self._place(i)
        block, lane = divmod(index, BLOCK)
        return render_block(self.name, self.size, self.seed, label, block)[lane]

    def images(
        self, indices: Sequence[int] | Int[np.ndarray, " b"]
    ) -> UInt8[np.ndarray, "b h w 3"]:
        """Several images at once; neighbours share the work."""
        return np.stack([self.image(int(i)) for i in indices])

    def locate(self, i: int) -> str:
        """Which image ``i`` is."""
        label, index = self._place(i)
        name = DOMAINS[self.name].class_names[label]
        return f"synthetic:{self.name}/{name}/{index} (seed {self.seed})"

    def fingerprint(self) -> str:
        """Identity of the images: the generator's version and its parameters."""
        return checksums.of_json(
            {"synthetic": VERSION, "classes": self.class_names}
            | dataclasses.asdict(self)
        )

    def _place(self, i: int) -> tuple[int, int]:
        """Class in the domain and number in the class."""
        if not 0 <= i < len(self):
            raise IndexError(f"image {i} of {len(self)}")
        place, index = divmod(i, self.per_class)
        return self._classes[place], index


def open_synthetic(
    name: str,
    *,
    split: str = "test",
    size: int = 32,
    seed: int = 0,
    per_class: int = 100,
) -> SyntheticSource:
    """Open a domain of the built-in family.

    Args:
      name: ``objects``, the source domain, or one of the targets: ``textures``,
        ``glyphs``, ``blobs``, ``tiles`` (``DOMAINS``).
      split: ``train`` (or ``base``), ``val``, ``test`` (or ``novel``), ``all``.
        The classes of targets are all for test.
      size: Edge of the images in pixels.
      seed: Seed of the images.
      per_class: Images of each class.

    Raises:
      UserError: There is no such domain or split, or a number is out of range.

    Examples:
      >>> source = open_synthetic("objects", split="novel")
      >>> len(source), source.class_names[0]
      (1600, 'ball with antennae')
    """
    if name not in DOMAINS:
        raise UserError(
            f"unknown synthetic domain {name!r}: use one of {', '.join(DOMAINS)}"
        )
    split = canonical_split(split)
    splits = DOMAINS[name].splits
    if split not in (*splits, "all"):
        raise UserError(
            f"synthetic:{name} has no {split} split, only {', '.join(splits)}; "
            f"train on synthetic:{next(iter(DOMAINS))}"
        )
    _check("size", size, 8, 1024)
    _check("seed", seed, 0, 2**32 - 1)
    _check("per_class", per_class, 1, 10**6)
    return SyntheticSource(name, split, size, seed, per_class)


def _check(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UserError(f"{what} {value} of a synthetic source: use {low} to {high}")
