"""Checks of argument shapes that name what is wrong, at trace time."""

from typing import Any

import numpy as np


def check_episode(
    support: Any, support_labels: Any, query: Any, num_classes: int
) -> None:
    """Raise ``ValueError`` unless the arrays make one episode.

    Args:
      support: Should be ``[s, d]``.
      support_labels: Should be ``[s]``.
      query: Should be ``[q, d]``.
      num_classes: Should be at least one.
    """
    shapes = tuple(np.shape(x) for x in (support, support_labels, query))
    if len(shapes[0]) != 2 or len(shapes[2]) != 2:
        raise ValueError(
            f"support and query must be [s, d] and [q, d], got {shapes[0]} and "
            f"{shapes[2]}; for several episodes use jax.vmap or rdc_jax.over_episodes"
        )
    if shapes[0][1] != shapes[2][1]:
        raise ValueError(
            "support and query must have features of one length, "
            f"got {shapes[0][1]} and {shapes[2][1]}"
        )
    if shapes[1] != shapes[0][:1]:
        raise ValueError(
            f"support_labels must be [{shapes[0][0]}], one a support, got {shapes[1]}"
        )
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}")
