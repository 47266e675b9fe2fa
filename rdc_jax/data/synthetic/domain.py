"""What a domain of the synthetic family is."""

import dataclasses
from collections.abc import Callable

from jaxtyping import Array, Float, Int

from rdc_jax.data.synthetic.draws import Seed

Painter = Callable[[Seed, Int[Array, ""], int], Float[Array, "h w 3"]]


@dataclasses.dataclass(frozen=True)
class Domain:
    """A set of classes and the function that paints one image of one of them.

    Attributes:
      name: Name of the domain.
      class_names: Name of every class; its index is what ``paint`` takes.
      splits: The class indices of each split.
      paint: ``paint(seed, label, size)`` gives colours in 0..1 before clipping.
    """

    name: str
    class_names: tuple[str, ...]
    splits: dict[str, tuple[int, ...]]
    paint: Painter

    def classes(self, split: str) -> tuple[int, ...]:
        """The class indices of a split, or of ``all`` of them."""
        if split == "all":
            return tuple(range(len(self.class_names)))
        return self.splits[split]


def all_in_test(count: int) -> dict[str, tuple[int, ...]]:
    """The splits of a target domain: nothing to train on."""
    return {"test": tuple(range(count))}
