"""From pictures to features, with any network."""

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.transforms import resize_size, test_batch
from rdc_jax.models.model import Model, load_backbone
from rdc_jax.models.weights import packaged
from rdc_jax.predict.pictures import Picture, read_pictures
from rdc_jax.runtime.errors import UserError

BATCH = 64
# What the torch checkpoints of the field, which do not note it, were trained at.
FIELD_SIZE = 224

Network = Callable[[Any], Any]


class Embedder:
    """A network with what has to happen to pixels before it.

    Attributes:
      network: From images to features; sees one batch shape only.
      image_size: Edge of the network's images in pixels.
      normalize: From pixels ``[b, image_size, image_size, 3]`` in 0 … 255 to what the
        network wants; ``None`` for ImageNet's mean and deviation.
      assumed: Whether nobody said what the image size is.
    """

    def __init__(
        self,
        network: Network,
        image_size: int | None = None,
        normalize: Network | None = None,
    ) -> None:
        self.network = network
        self.image_size = image_size or FIELD_SIZE
        self.assumed = image_size is None
        self.normalize = normalize

    @property
    def square(self) -> int:
        """Edge of the squares that pictures are squeezed into before the crop."""
        return resize_size(self.image_size)

    def __call__(
        self, squares: UInt8[np.ndarray, "n size size 3"], *, batch: int | None = None
    ) -> Float32[np.ndarray, "n d"]:
        """Compute features of decoded squares, ``batch`` at a time.

        Raises:
          UserError: The network gives something other than one finite row an image.
        """
        batch = batch or min(BATCH, _power_of_two(len(squares)))
        parts = [
            self._features(squares[start : start + batch], batch)
            for start in range(0, len(squares), batch)
        ]
        return np.concatenate(parts)

    def _features(self, squares: np.ndarray, batch: int) -> np.ndarray:
        filler = np.zeros((batch - len(squares), *squares.shape[1:]), np.uint8)
        images = np.concatenate([squares, filler])
        feat_bd = np.asarray(self.network(self._prepare(images)), np.float32)
        if feat_bd.ndim != 2 or len(feat_bd) != batch:
            raise UserError(
                f"the backbone gives {feat_bd.shape} for {batch} images: it must give "
                "one row of features an image"
            )
        feat_bd = feat_bd[: len(squares)]
        if not np.isfinite(feat_bd).all():
            raise UserError(
                "the backbone gives features that are not finite: its weights are "
                "damaged, or its images are not normalised as it expects"
            )
        return feat_bd

    def _prepare(self, images: np.ndarray) -> Any:
        if self.normalize is None:
            return np.array(test_batch(images, self.image_size))  # torch wants its own
        margin = round((self.square - self.image_size) / 2)
        inside = slice(margin, margin + self.image_size)
        return self.normalize(images[:, inside, inside])


class Embedded(NamedTuple):
    """The readable ones of some pictures.

    Attributes:
      features: One row each.
      rows: Their places among all the pictures.
      thumbnails: JPEG bytes, empty where none were asked for.
      unreadable: Why the others could not be read, by place.
    """

    features: Float32[np.ndarray, "n d"]
    rows: np.ndarray
    thumbnails: tuple[bytes, ...]
    unreadable: dict[int, UnreadableImage]


def embed_files(
    embedder: Embedder,
    paths: tuple[pathlib.Path, ...],
    *,
    thumbnails: bool = False,
    tick: Callable[[int], object] = lambda _: None,
) -> Embedded:
    """Read pictures and compute their features, in bounded memory.

    Args:
      embedder: The network.
      paths: The files.
      thumbnails: Whether to keep thumbnails.
      tick: Called with the number of pictures done since the last call.

    Returns:
      Features of what can be read, and what cannot.

    Raises:
      UserError: No picture can be read.
    """
    batch = min(BATCH, _power_of_two(len(paths)))
    features: list[np.ndarray] = []
    kept: list[bytes] = []
    rows: list[int] = []
    unreadable: dict[int, UnreadableImage] = {}
    pictures = read_pictures(paths, embedder.square, thumbnails=thumbnails)
    for chunk in _chunks(enumerate(pictures), batch):
        good = [(i, p) for i, p in chunk if isinstance(p, Picture)]
        unreadable |= {i: p for i, p in chunk if isinstance(p, UnreadableImage)}
        if good:
            squares = np.stack([picture.square for _, picture in good])
            features.append(embedder(squares, batch=batch))
            kept += [picture.thumbnail for _, picture in good]
            rows += [i for i, _ in good]
        tick(len(chunk))
    if not rows:
        raise UserError(f"none of {len(paths)} pictures can be read: {unreadable[0]}")
    return Embedded(np.concatenate(features), np.array(rows), tuple(kept), unreadable)


def make_embedder(
    backbone: Network | str | os.PathLike[str] | None,
    *,
    image_size: int | None = None,
    normalize: Network | None = None,
) -> Embedder:
    """Make an embedder of a checkpoint, or of any function of images.

    Args:
      backbone: A checkpoint as ``load_backbone`` takes it, a function, or ``None`` for
        the weights that come with the package.
      image_size: In pixels; ``None``: what the checkpoint notes, else 224.
      normalize: See ``Embedder``.

    Returns:
      The embedder.

    Raises:
      UserError: There is no such checkpoint.
    """
    if backbone is None:
        backbone = packaged()
    if isinstance(backbone, (str, os.PathLike)):
        backbone = load_backbone(backbone)
    noted = None
    if isinstance(backbone, Model):
        noted = backbone.metadata.get("image_size")
    return Embedder(backbone, image_size or noted, normalize)


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _power_of_two(n: int) -> int:
    """The smallest power of two that is at least n.

    >>> _power_of_two(1), _power_of_two(5), _power_of_two(64)
    (1, 8, 64)
    """
    return 1 << max(n - 1, 0).bit_length()
