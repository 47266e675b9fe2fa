"""The synthetic domains as sets of images, rendered in blocks when they are read."""

import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt8, UInt32
from PIL import Image

from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import MissingSplit, canonical_split
from rdc_jax.data.synthetic.blobs import BLOBS
from rdc_jax.data.synthetic.canvas import Domain
from rdc_jax.data.synthetic.glyphs import GLYPHS
from rdc_jax.data.synthetic.hash_rng import derive
from rdc_jax.data.synthetic.objects import OBJECTS
from rdc_jax.data.synthetic.textures import TEXTURES
from rdc_jax.data.synthetic.tiles import TILES
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

VERSION = 1  # of the generator: to be raised whenever a pixel changes
BLOCK = 32  # images rendered at a time

DOMAINS: dict[str, Domain] = {
    "objects": OBJECTS,
    "textures": TEXTURES,
    "glyphs": GLYPHS,
    "blobs": BLOBS,
    "tiles": TILES,
}


def open_synthetic(
    name: str,
    *,
    split: str = "test",
    size: int = 32,
    seed: int = 0,
    per_class: int = 100,
) -> ImageSet:
    """Open a domain of the built-in family.

    Args:
      name: ``objects``, the source domain, or one of the targets: ``textures``,
        ``glyphs``, ``blobs``, ``tiles`` (``DOMAINS``).
      split: ``train`` (or ``base``), ``val``, ``test`` (or ``novel``), ``all``.
        The classes of targets are all for test.
      size: Edge of the images in pixels.
      seed: Seed of the images; classes are the same under every seed.
      per_class: Images of each class. Fewer are the first ones of more.

    Raises:
      UserError: There is no such domain or split, or a number is out of range.

    Examples:
      >>> images = open_synthetic("objects", split="novel")
      >>> len(images), images.class_names[0]
      (1600, 'ball with antennae')
    """
    if name not in DOMAINS:
        raise UserError(
            f"unknown synthetic domain {name!r}: use one of {', '.join(DOMAINS)}"
        )
    domain, split = DOMAINS[name], canonical_split(split)
    every = tuple(range(len(domain.class_names)))
    splits = {**(domain.splits or {"test": every}), "all": every}
    if split not in splits:
        raise MissingSplit(
            f"synthetic:{name} has no {split} split, only {', '.join([*splits][:-1])}; "
            f"train on synthetic:{next(iter(DOMAINS))}"
        )
    identity = {"size": size, "seed": seed, "per_class": per_class}
    limits = {"size": (8, 1024), "seed": (0, 2**32 - 1), "per_class": (1, 10**6)}
    for what, (low, high) in limits.items():
        if not low <= identity[what] <= high:
            raise UserError(
                f"{what} {identity[what]} of a synthetic source: use {low} to {high}"
            )
    labels = splits[split]
    class_names = tuple(domain.class_names[label] for label in labels)

    def read(i: int) -> Image.Image:
        label, number = labels[i // per_class], i % per_class
        block = render_block(name, size, seed, label, number // BLOCK)
        return Image.fromarray(block[number % BLOCK])

    return ImageSet(
        name=name,
        split=split,
        ids=[f"{c}/{i} (seed {seed})" for c in class_names for i in range(per_class)],
        labels=np.repeat(np.arange(len(labels)), per_class),
        class_names=class_names,
        read=read,
        identity=checksums.of_json(
            {"synthetic": VERSION, "classes": class_names, "name": name}
            | {"split": split, **identity}
        ),
        root=f"synthetic:{name}/",
    )


@functools.lru_cache(maxsize=64)
def render_block(
    name: str, size: int, seed: int, label: int, block: int
) -> UInt8[np.ndarray, "b h w 3"]:
    """Images ``block * BLOCK`` onwards of one class, read-only.

    Blocks are always whole. So each image is computed by the same program in the same
    row of a batch, and its bits do not depend on which images are asked for.
    ``label`` counts the classes of all splits.
    """
    try:
        # Even beside an accelerator: the same pixels, and device memory stays free.
        cpu = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to start no CPU backend
        cpu = None
    with jax.default_device(cpu):
        root = derive(np.uint32(seed), zlib.crc32(name.encode()) % 2**31)
        return np.asarray(_render(name, size, root, np.int32(label), np.int32(block)))


@functools.partial(jax.jit, static_argnames=("name", "size"))
def _render(
    name: str,
    size: int,
    root: UInt32[Array, ""],
    label: Int[Array, ""],
    block: Int[Array, ""],
) -> UInt8[Array, "b h w 3"]:
    paint = DOMAINS[name].paint
    index_b = block * BLOCK + np.arange(BLOCK, dtype=np.int32)
    picture_bhw3 = jax.vmap(lambda i: paint(derive(root, label, i), label, size))(
        index_b
    )
    return (jnp.clip(picture_bhw3, 0.0, 1.0) * 255.0 + 0.5).astype(jnp.uint8)
