"""Digests beside metadata, by which a reader of arrays knows that nothing changed.

Formats of arrays hold checksums of some of their parts only: a bit that flips on a disk
would come back as another weight, and as other accuracies.
"""

from typing import Any

from rdc_jax import fingerprint

_FIELD = "sha256"  # By name; the metadata without this field are among them.


def seal(metadata: dict[str, Any], **trees: Any) -> dict[str, Any]:
    """Add digests of metadata and of trees of arrays to the metadata.

    >>> import numpy as np
    >>> unseal(seal({"step": 3}, weights={"w": np.ones(2)}), weights={"w": np.ones(2)})
    {'step': 3}

    Args:
      metadata: Something JSON can hold.
      **trees: Saved beside it.

    Returns:
      The metadata with one field more.
    """
    digests = {name: fingerprint.of_tree(tree) for name, tree in trees.items()}
    digests["metadata"] = fingerprint.of_json(metadata)
    return {**metadata, _FIELD: digests}


def unseal(sealed: dict[str, Any], **trees: Any) -> dict[str, Any]:
    """Give the metadata that were sealed; those of older versions have no digests.

    Args:
      sealed: As ``seal`` made them.
      **trees: Those of the trees that were read.

    Returns:
      The metadata.

    Raises:
      ValueError: They, or one of the trees, are not what was saved.
    """
    metadata = {name: value for name, value in sealed.items() if name != _FIELD}
    if digests := sealed.get(_FIELD):
        for name, digest in seal(metadata, **trees)[_FIELD].items():
            if digests[name] != digest:
                raise ValueError(f"its {name} are not what was saved")
    return metadata
