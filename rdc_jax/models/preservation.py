"""Which steps of a run stay on disk."""

from collections.abc import Callable, Sequence
from typing import Any

_LATEST = 2


def best_of(steps: Sequence[int], score: Callable[[int], float]) -> int:
    """Give the step of the highest score, the later of equals.

    >>> best_of([1, 2, 3], {1: 0.5, 2: 0.9, 3: 0.9}.get)
    3
    """
    return max(steps, key=lambda step: (score(step), step))


class LatestAndBest:
    """Keeps the two latest steps and the best one, as a policy of orbax.

    Orbax's own policy keeps scores in files that nothing protects from damage, and
    would delete the wrong step by them.

    Args:
      score: Gives the score of a step.
    """

    def __init__(self, score: Callable[[int], float]) -> None:
        self._score = score

    def should_preserve(
        self, checkpoints: Sequence[Any], *, context: object
    ) -> list[bool]:
        """Say of each checkpoint whether it stays."""
        steps = sorted(checkpoint.step for checkpoint in checkpoints)
        kept = {*steps[-_LATEST:], *(steps and [best_of(steps, self._score)])}
        return [checkpoint.step in kept for checkpoint in checkpoints]
