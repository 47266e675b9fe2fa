"""Features from files or from folders of pictures."""

import argparse
import functools
import logging
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Num, Shaped

from rdc_jax.rerank.metrics import Labels
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

_BATCH = 64
_FIELD_SIZE = 224  # What torch checkpoints, which do not note it, were trained at.


class Rows(NamedTuple):
    """Features and what is known of them.

    Attributes:
      features: Memory-mapped where they are a .npy file.
      labels: Classes and cameras, if known.
      names: Of pictures.
    """

    features: Num[np.ndarray, "n d"]
    labels: Labels | None = None
    names: Shaped[np.ndarray, " n"] | None = None


def read_rows(arguments: argparse.Namespace) -> tuple[Rows, Rows]:
    """Read queries and gallery, and check them against each other.

    Raises:
      UserError: A file cannot be read, holds something else, or does not fit.
    """
    both = []
    for i, path in enumerate((arguments.query, arguments.gallery)):
        if pathlib.Path(path).is_dir():
            _log.info("features of the pictures in %s", path)
            rows = embed_folder(path, arguments.checkpoint, arguments.image_size)
        else:
            pairs = arguments.labels, arguments.cameras
            rows = read_features(path, *(files and files[i] for files in pairs))
        both.append(rows)
    query, gallery = both
    lengths = [rows.features.shape[1] for rows in both]
    if lengths[0] != lengths[1]:
        raise UserError(
            f"{arguments.query} has features of {lengths[0]} numbers, "
            f"{arguments.gallery} of {lengths[1]}: use those of one network"
        )
    if query.labels and gallery.labels:
        if not np.isin(query.labels.classes, gallery.labels.classes).any():
            raise UserError(
                "no query has a class of the gallery, such as "
                f"{gallery.labels.classes[0]}: check the labels"
            )
    elif not (arguments.out or arguments.distances or arguments.workdir):
        raise UserError("nothing to write: give --out, --distances or --labels")
    return query, gallery


def read_features(
    path: str, labels: str | None = None, cameras: str | None = None
) -> Rows:
    """Read features from a .npy or .npz file, and maybe labels from others.

    A .npz file may hold ``labels`` and ``cameras`` itself.

    Raises:
      UserError: A file cannot be read, or holds something else.
    """
    arrays = _load(path, "features")
    features = arrays["features"]
    if features.dtype == np.dtype("V2"):  # How NumPy reads bfloat16 back.
        features = features.view(jnp.bfloat16)
    if features.ndim != 2 or 0 in features.shape or features.dtype.kind not in "fiuV":
        raise UserError(
            f"{path} holds {features.dtype}{list(features.shape)}: features must be "
            "real numbers [n, d]"
        )
    for name, file in (("labels", labels), ("cameras", cameras)):
        if file is not None:
            arrays[name] = _load(file, name)[name]
        if name in arrays and np.shape(arrays[name]) != features.shape[:1]:
            raise UserError(
                f"{file or path} holds {name} of shape {np.shape(arrays[name])} for "
                f"{len(features)} rows: give one a row"
            )
    if "labels" not in arrays:
        return Rows(features)
    return Rows(features, Labels(arrays["labels"], arrays.get("cameras")))


def _load(path: str, name: str) -> dict[str, np.ndarray]:
    """The array of a .npy file under a name, or the arrays of a .npz file."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        arrays = {name: found} if isinstance(found, np.ndarray) else dict(found)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise UserError(f"{path} is no .npy or .npz file: {error}") from error
    if name not in arrays:
        held = ", ".join(arrays) or "nothing"
        raise UserError(f"{path} holds {held}: it needs an array named {name}")
    return arrays


def embed_folder(path: str, checkpoint: str, image_size: int | None) -> Rows:
    """Compute the features of a folder of pictures, one folder a class.

    Args:
      path: The folder; of one with splits, the test split is taken.
      checkpoint: As ``load_backbone`` takes it, or ``packaged``.
      image_size: Of the network; ``None``: what the checkpoint notes, else 224.
    """
    from rdc_jax.data.features import feature_cache
    from rdc_jax.data.open import open_source
    from rdc_jax.data.pixels import pixel_cache
    from rdc_jax.data.squares import Square

    source = open_source(str(pathlib.Path(path).absolute()), split="test")
    feature_fn, fingerprint, square = _network(checkpoint, image_size)
    with tempfile.TemporaryDirectory() as folder:
        pixels = pixel_cache(source, Square(*square), folder, skip_unreadable=True)
        features = feature_cache(
            pixels,
            feature_fn,
            weights_fingerprint=fingerprint,
            transform="",
            cache_dir=folder,
            batch_size=_BATCH,
        )
        classes = np.array(pixels.class_names)[pixels.labels]
        names = np.array([source.locate(int(row)) for row in pixels.rows])
        return Rows(np.array(features), Labels(classes), names)


@functools.lru_cache(maxsize=1)  # Queries and gallery share what is compiled.
def _network(
    checkpoint: str, image_size: int | None
) -> tuple[Callable[[Any], jax.Array], str, tuple[int, bool, str]]:
    """Features of raw pictures, the identity of the weights, and their squares."""
    from rdc_jax.data.transforms import test_batch
    from rdc_jax.models.load import load_backbone

    model = load_backbone(checkpoint)
    size = image_size or model.metadata.get("image_size") or _FIELD_SIZE

    square = model.preprocessing.square_at(size)

    def feature_fn(images: Any) -> jax.Array:
        return model.embed(test_batch(images, size, square[0]))

    compiled = feature_fn if model.on_host else jax.jit(feature_fn)
    return compiled, model.fingerprint, square
