"""From a class and a number to pixels, in blocks."""

import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt8, UInt32

from rdc_jax.data.synthetic.blobs import BLOBS
from rdc_jax.data.synthetic.domain import Domain
from rdc_jax.data.synthetic.draws import derive
from rdc_jax.data.synthetic.glyphs import GLYPHS
from rdc_jax.data.synthetic.objects import OBJECTS
from rdc_jax.data.synthetic.textures import TEXTURES
from rdc_jax.data.synthetic.tiles import TILES

VERSION = 1  # of the generator: to be raised whenever a pixel changes
BLOCK = 32  # images rendered at a time

DOMAINS: dict[str, Domain] = {
    domain.name: domain for domain in (OBJECTS, TEXTURES, GLYPHS, BLOBS, TILES)
}


@functools.lru_cache(maxsize=64)
def render_block(
    name: str, size: int, seed: int, label: int, block: int
) -> UInt8[np.ndarray, "b h w 3"]:
    """Images ``block * BLOCK`` onwards of one class, read-only.

    Blocks are always whole. So each image is computed by the same program in the same
    place of a batch, and its bits do not depend on which images are asked for.

    Args:
      name: The domain.
      size: Edge of the images in pixels.
      seed: Seed of the family, below 2³².
      label: Class in the domain, over all splits.
      block: Number of the block.
    """
    # On CPU even beside an accelerator: the same pixels, and device memory stays free.
    with jax.default_device(_cpu()):
        root = derive(np.uint32(seed), zlib.crc32(name.encode()) % 2**31)
        return np.asarray(_render(name, size, root, np.int32(label), np.int32(block)))


def _cpu() -> jax.Device | None:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to start no CPU backend
        return None


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
