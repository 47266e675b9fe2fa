"""From pictures to features, with any network."""

import itertools
import logging
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, UInt8

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import printable
from rdc_jax.data.squares import Square
from rdc_jax.data.transforms import test_batch
from rdc_jax.methods.views import Views, compiled, feature_fn
from rdc_jax.models.load import from_function, load_backbone
from rdc_jax.models.model import Model
from rdc_jax.models.preprocessing import FIELD
from rdc_jax.predict.pictures import AnyPicture, read_pictures
from rdc_jax.predict.task import Support
from rdc_jax.runtime.compiled import say_if_slow
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

# Pictures that a network sees at a time: always so many, so that it is compiled once.
_BATCH = 32
# What the torch checkpoints of the field, which do not note it, were trained at.
_FIELD_SIZE = 224

_CROP = Views()  # The features of one crop.

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
    """A network with what has to happen to pictures before it.

    Args:
      backbone: A checkpoint as ``load_backbone`` takes it, or a function from images
        to features, which sees one batch shape only.
      image_size: Edge of the network's images in pixels; ``None``: what the checkpoint
        notes, else 224.
      normalize: From pixels ``[b, image_size, image_size, 3]`` in 0 … 255 to what the
        network wants; ``None`` for ImageNet's mean and deviation.
      views: What is taken of a picture and of the network; more than the network's
        output for one view needs a checkpoint.
      thumbnails: Whether to keep thumbnails of the pictures.
      advance: Called with the number of pictures done since the last call.

    Raises:
      UserError: There is no such checkpoint.
    """

    def __init__(
        self,
        backbone: Network | str | os.PathLike[str],
        image_size: int | None = None,
        normalize: Network | None = None,
        *,
        views: Views = _CROP,
        thumbnails: bool = False,
        advance: Callable[[int], object] = lambda _: None,
    ) -> None:
        if normalize is not None and views != _CROP:
            raise UserError("views and layers do not go with normalize: leave it out")
        self.network = backbone if callable(backbone) else load_backbone(backbone)
        if views != _CROP and not isinstance(self.network, Model):
            self.network = from_function(self.network)
        if image_size is None and isinstance(self.network, Model):
            image_size = self.network.metadata.get("image_size")
        if image_size is None:
            image_size = _FIELD_SIZE
            _log.info(
                "the checkpoint does not note its image size: %d pixels are assumed, "
                "image_size says otherwise",
                image_size,
            )
        if image_size < 1:
            raise UserError(f"image_size={image_size}: use a number above 0")
        self.image_size, self.normalize = image_size, normalize
        wanted = FIELD
        if isinstance(self.network, Model):
            wanted = self.network.preprocessing
        self.square = Square(*wanted.square_at(image_size))
        if wanted.noted.keys() - {"size"}:
            _log.info("images: %s", wanted.at(image_size))
        self.thumbnails, self.advance = thumbnails, advance
        self._embed: Network = self._own
        if isinstance(self.network, Model) and normalize is None:
            embed = compiled(feature_fn(views, image_size), self.network)
            self._embed = lambda images: embed(self.network, jnp.asarray(images))

    def __str__(self) -> str:
        arch = getattr(self.network, "arch", "own network")
        return f"{arch} at {self.image_size} px"

    def __call__(self, named: Iterable[tuple[str, AnyPicture]]) -> Pictures:
        """Read pictures, each with its name, and compute their features.

        Memory is bounded, however many there are.

        Returns:
          Features of what can be read, and what cannot; the latter is logged too.

        Raises:
          UserError: No picture can be read, or the network gives something other than
            one finite row an image.
        """
        keys, pictures = zip(*named, strict=True)
        names = [*map(printable, keys)]
        features, thumbnails, rows, unreadable = [], [], [], []
        read = read_pictures(pictures, self.square, thumbnails=self.thumbnails)
        decoded = enumerate(read)
        while chunk := list(itertools.islice(decoded, _BATCH)):
            squares = []
            for row, one in chunk:
                if isinstance(one, UnreadableImage):
                    _log.warning("unreadable: %s: %s", one.where, one.reason)
                    unreadable.append((names[row], one.reason))
                else:
                    squares.append(one[0])
                    thumbnails.append(one[1])
                    rows.append(row)
            if squares:
                features.append(self._features(np.stack(squares)))
            self.advance(len(chunk))
        if not rows:
            first = ": ".join(unreadable[0])
            raise UserError(f"none of {len(names)} pictures can be read: {first}")
        return Pictures(
            np.concatenate(features),
            names=tuple(names[row] for row in rows),
            thumbnails=tuple(thumbnails),
            unreadable=tuple(unreadable),
            rows=tuple(rows),
        )

    def _features(
        self, squares: UInt8[np.ndarray, "n size size 3"]
    ) -> Float32[np.ndarray, "n d"]:
        """Features of one batch, or of fewer, which are padded to one."""
        n = len(squares)
        filler = np.zeros((_BATCH - n, *squares.shape[1:]), np.uint8)
        images = np.concatenate([squares, filler])
        with say_if_slow("compiling the network"):
            feat_bd = np.asarray(self._embed(images), np.float32)
        if feat_bd.ndim != 2 or len(feat_bd) != len(images):
            raise UserError(
                f"the backbone gives {feat_bd.shape} for {len(images)} images: it must "
                "give one row of features an image"
            )
        if not np.isfinite(feat_bd[:n]).all():
            raise UserError(
                "the backbone gives features that are not finite: its weights are "
                "damaged, or its images are not normalised as it expects"
            )
        return feat_bd[:n]

    def _own(self, squares: UInt8[np.ndarray, "b edge edge 3"]) -> Any:
        """What a function gives, or any network after a normalisation of its own."""
        edge, size = squares.shape[1], self.image_size
        if self.normalize is None:
            # A copy that may be written to, as torch wants it.
            return self.network(np.array(test_batch(squares, size, edge)))
        margin = round((edge - size) / 2)
        inside = slice(margin, margin + size)
        return self.network(self.normalize(squares[:, inside, inside]))


def embed_support(embedder: Embedder, source: ImageSet) -> Support:
    """Compute the features of labelled pictures.

    Returns:
      Those that can be read, under labels without gaps.

    Raises:
      UserError: Fewer than two classes have a readable picture.
    """
    pictures = embedder(zip(source.ids, source.paths, strict=True))
    kept, labels_s = np.unique(source.labels[list(pictures.rows)], return_inverse=True)
    class_names = tuple(source.class_names[i] for i in kept)
    for name in sorted(set(source.class_names) - set(class_names)):
        _log.info("class %s has no readable picture and is left out", name)
    if len(class_names) < 2:
        raise UserError("fewer than two classes have readable pictures: add some")
    features, names, thumbnails, *_ = pictures
    return Support(features, labels_s.astype(np.int32), class_names, names, thumbnails)
