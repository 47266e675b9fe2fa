"""Hex digests that say whether two things hold the same content.

All of them are SHA-256, and depend on nothing but the content: not on the process,
the machine's byte order, the order of a dictionary or the time of a file.
"""

import hashlib
import json
import os
from typing import Any

import jax
import numpy as np

_FIELD = "sha256"  # A digest of all other fields; with trees, one by name.


def of_json(value: Any) -> str:
    """Digest of a JSON-able value; the order of dictionary keys does not matter.

    >>> of_json({"k": 10, "lam": 0.5}) == of_json({"lam": 0.5, "k": 10})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def of_array(array: Any) -> str:
    """Digest of an array's dtype, shape and values, in whatever layout it is stored.

    >>> import numpy as np
    >>> of_array(np.arange(3)) == of_array(np.arange(6)[::2] // 2)
    True
    >>> of_array(np.zeros(3)) == of_array(np.zeros((3, 1)))
    False
    """
    array = np.asarray(array)
    # Not `dtype.str`, which is "<V2" for bfloat16 and other types of ml_dtypes.
    digest = hashlib.sha256(f"{array.dtype.name}{array.shape}".encode())
    little_endian = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    digest.update(little_endian.reshape(-1).view(np.uint8))
    return digest.hexdigest()


def of_tree(tree: Any) -> str:
    """Digest of a pytree of arrays, such as a model's weights: names and values.

    >>> import numpy as np
    >>> of_tree({"w": np.ones(2)}) == of_tree({"v": np.ones(2)})
    False
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return of_json([[jax.tree_util.keystr(path), of_array(x)] for path, x in leaves])


def of_file(path: str | os.PathLike[str]) -> str:
    """Digest of a file's bytes, read in small pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def add(metadata: dict[str, Any], **trees: Any) -> dict[str, Any]:
    """Set the field ``sha256`` to checksums of metadata, and of trees saved beside it.

    Array formats do not checksum all of their content: a bit that flips on disk
    would silently change a weight, and accuracies with it.

    >>> import numpy as np
    >>> verify(add({"step": 3}, weights={"w": np.ones(2)}), weights={"w": np.ones(2)})
    {'step': 3}
    >>> add(add({"rows": []})) == add({"rows": []})
    True
    """
    content = {name: value for name, value in metadata.items() if name != _FIELD}
    digests = _digests(content, trees)
    return {**content, _FIELD: digests if trees else digests["metadata"]}


def verify(noted: dict[str, Any], **trees: Any) -> dict[str, Any]:
    """Check metadata and trees, and return the metadata without checksums.

    Metadata of older versions have no checksums, and pass. Trees that are left out are
    not checked.

    Raises:
      ValueError: The metadata or a tree is not what was saved.
    """
    content = {name: value for name, value in noted.items() if name != _FIELD}
    if _FIELD not in noted:
        return content
    stored = noted[_FIELD]
    if not isinstance(stored, dict):
        stored = {"metadata": stored}
    for name, digest in _digests(content, trees).items():
        if stored.get(name) != digest:
            raise ValueError(f"its {name} are not what was saved")
    return content


def _digests(content: dict[str, Any], trees: dict[str, Any]) -> dict[str, str]:
    of_trees = {name: of_tree(tree) for name, tree in trees.items()}
    return {**of_trees, "metadata": of_json(content)}
