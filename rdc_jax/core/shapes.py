"""Checks of argument shapes that name what is wrong, at trace time."""

from typing import Any

import numpy as np

# The axes of each array that public functions take: a letter has one size in a call.
AXES = {
    **{"support": "sd", "support_labels": "s", "query": "qd"},
    **{"support_mask": "s", "query_mask": "q"},
    **{"features": "nd", "mask": "n"},
    **{"original": "nn", "target": "nn", "neighbours": "nn"},
}


def check_shapes(**arrays: Any) -> None:
    """Raise ``ValueError`` unless the named arrays have their ``AXES``.

    Example:
      >>> import numpy as np
      >>> from rdc_jax.core.shapes import check_shapes
      >>> check_shapes(support=np.ones((5, 8)), support_labels=np.arange(4))
      Traceback (most recent call last):
      ValueError: support_labels [s] has shape (4,), but support has s=5
    """
    sizes: dict[str, tuple[str, int]] = {}
    for name, array in arrays.items():
        axes, shape = AXES[name], tuple(np.shape(array))
        wanted = f"{name} [{', '.join(axes)}]"
        if len(shape) != len(axes):
            raise ValueError(f"{wanted} has shape {shape}{_hint(name, shape)}")
        for axis, size in zip(axes, shape, strict=True):
            first, known = sizes.setdefault(axis, (name, size))
            if size != known:
                raise ValueError(
                    f"{wanted} has shape {shape}, but {first} has {axis}={known}"
                )


def _hint(name: str, shape: tuple[int, ...]) -> str:
    if name == "support_labels":
        return ": give one class number for each support"
    if len(shape) == len(AXES[name]) + 1:
        return ": for several tasks use jax.vmap or rdc_jax.over_episodes"
    return ""


def check_episode(
    support: Any, support_labels: Any, query: Any, num_classes: int
) -> None:
    """Raise ``ValueError`` unless the arrays make one task of at least one class."""
    check_shapes(support=support, support_labels=support_labels, query=query)
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}")
