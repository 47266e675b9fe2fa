"""From pictures to features, with any network."""

import itertools
import logging
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import printable
from rdc_jax.data.transforms import resize_size, test_batch
from rdc_jax.models.model import Model, load_backbone
from rdc_jax.models.weights import packaged
from rdc_jax.predict.pictures import AnyPicture, read_pictures
from rdc_jax.predict.task import Support, say_if_slow
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

BATCH = 64
# What the torch checkpoints of the field, which do not note it, were trained at.
FIELD_SIZE = 224

Network = Callable[[Any], Any]


class Pictures(NamedTuple):
    """The readable ones of some pictures, or rows of features that have no names.

    Attributes:
      features: One row each.
      names: What each is called.
      thumbnails: JPEG bytes, empty where none were asked for.
      unreadable: Name and reason of each that could not be read.
      rows: The places of the readable ones among all.
    """

    features: np.ndarray
    names: tuple[str, ...] = ()
    thumbnails: tuple[bytes, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    rows: tuple[int, ...] = ()


class Embedder:
    """A network with what has to happen to pixels before it.

    Args:
      backbone: A checkpoint as ``load_backbone`` takes it, ``"packaged"`` for the
        weights that come with the package, or a function from images to features. The
        function sees one batch shape only.
      image_size: Edge of the network's images in pixels; ``None``: what the checkpoint
        notes, else 224.
      normalize: From pixels ``[b, image_size, image_size, 3]`` in 0 … 255 to what the
        network wants; ``None`` for ImageNet's mean and deviation.

    Attributes:
      assumed: Whether nobody said what the image size is.
      square: Edge of the squares that pictures are squeezed into before the crop.

    Raises:
      UserError: There is no such checkpoint.
    """

    def __init__(
        self,
        backbone: Network | str | os.PathLike[str],
        image_size: int | None = None,
        normalize: Network | None = None,
    ) -> None:
        if isinstance(backbone, (str, os.PathLike)):
            backbone = _load(backbone)
        if image_size is None and isinstance(backbone, Model):
            image_size = backbone.metadata.get("image_size")
        if image_size is not None and image_size < 1:
            raise UserError(f"image_size={image_size}: use a number above 0")
        self.network = backbone
        self.assumed = image_size is None
        self.image_size = FIELD_SIZE if image_size is None else image_size
        self.normalize = normalize
        self.square = resize_size(self.image_size)

    def __str__(self) -> str:
        arch = getattr(self.network, "arch", "own network")
        return f"{arch} at {self.image_size} px"

    def __call__(
        self, squares: UInt8[np.ndarray, "n size size 3"], batch: int
    ) -> Float32[np.ndarray, "n d"]:
        """Compute the features of at most ``batch`` decoded squares.

        Raises:
          UserError: The network gives something other than one finite row an image.
        """
        filler = np.zeros((batch - len(squares), *squares.shape[1:]), np.uint8)
        images = np.concatenate([squares, filler])
        if self.normalize is None:
            # A copy that may be written to, as torch wants it.
            images = np.array(test_batch(images, self.image_size))
        else:
            margin = round((self.square - self.image_size) / 2)
            inside = slice(margin, margin + self.image_size)
            images = self.normalize(images[:, inside, inside])
        feat_bd = np.asarray(self.network(images), np.float32)
        if feat_bd.ndim != 2 or len(feat_bd) != batch:
            raise UserError(
                f"the backbone gives {feat_bd.shape} for {batch} images: it must give "
                "one row of features an image"
            )
        if not np.isfinite(feat_bd[: len(squares)]).all():
            raise UserError(
                "the backbone gives features that are not finite: its weights are "
                "damaged, or its images are not normalised as it expects"
            )
        return feat_bd[: len(squares)]


def embed(
    embedder: Embedder,
    pictures: Sequence[AnyPicture],
    names: Sequence[str] = (),
    *,
    batch: int | None = None,
    thumbnails: bool = False,
    advance: Callable[[int], object] = lambda _: None,
) -> Pictures:
    """Read pictures and compute their features, in bounded memory.

    Args:
      embedder: The network.
      pictures: Files, or pictures in memory.
      names: One each; by default their paths or their numbers.
      batch: Pictures that the network sees at a time; see ``batch_for``.
      thumbnails: Whether to keep thumbnails.
      advance: Called with the number of pictures done since the last call.

    Returns:
      Features of what can be read, and what cannot; the latter is logged too.

    Raises:
      UserError: No picture can be read.
    """
    batch = batch or batch_for(len(pictures))
    names = names or [
        str(one) if isinstance(one, pathlib.Path) else str(i)
        for i, one in enumerate(pictures)
    ]
    names = [*map(printable, names)]
    features, kept, rows, unreadable = [], [], [], []
    decoded = enumerate(read_pictures(pictures, embedder.square, thumbnails=thumbnails))
    while chunk := list(itertools.islice(decoded, batch)):
        squares = []
        for row, one in chunk:
            if isinstance(one, UnreadableImage):
                _log.warning("unreadable: %s: %s", one.where, one.reason)
                unreadable.append((names[row], one.reason))
            else:
                squares.append(one[0])
                kept.append(one[1])
                rows.append(row)
        if squares:
            with say_if_slow("compiling the network for this size of batch"):
                features.append(embedder(np.stack(squares), batch))
        advance(len(chunk))
    if not rows:
        first = ": ".join(unreadable[0])
        raise UserError(f"none of {len(pictures)} pictures can be read: {first}")
    readable = tuple(names[row] for row in rows)
    feat_nd = np.concatenate(features)
    return Pictures(feat_nd, readable, tuple(kept), tuple(unreadable), tuple(rows))


def batch_for(count: int) -> int:
    """The smallest power of two that holds so many pictures, at most 64.

    >>> batch_for(1), batch_for(5), batch_for(500)
    (1, 8, 64)
    """
    return min(BATCH, 1 << max(count - 1, 0).bit_length())


def embed_support(embed: Callable[..., Pictures], source: ImageSet) -> Support:
    """Compute the features of labelled pictures by ``embed(pictures, names)``.

    Returns:
      Those that can be read, under labels without gaps.

    Raises:
      UserError: Fewer than two classes have a readable picture.
    """
    pictures = embed(source.paths, source.ids)
    kept, labels_s = np.unique(source.labels[list(pictures.rows)], return_inverse=True)
    class_names = tuple(source.class_names[i] for i in kept)
    for name in sorted(set(source.class_names) - set(class_names)):
        _log.info("class %s has no readable picture and is left out", name)
    if len(class_names) < 2:
        raise UserError("fewer than two classes have readable pictures: add some")
    features, names, thumbnails, *_ = pictures
    return Support(features, labels_s.astype(np.int32), class_names, names, thumbnails)


def _load(path: str | os.PathLike[str]) -> Model:
    if path == "packaged":
        return load_backbone(packaged())
    if not pathlib.Path(path).exists():
        raise UserError(
            f"there is no {path}: give a work directory of run_pretrain.py, a .tar or "
            ".safetensors file, or 'packaged' for the weights that come with rdc_jax"
        )
    return load_backbone(path)
