"""Training of a head on a network that stays as it is, and so sees each image once."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Float32, Int, UInt8

from rdc_jax.data.features import feature_cache
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.transforms import test_batch, train_batch
from rdc_jax.models.heads.episode import Inputs
from rdc_jax.models.model import Model
from rdc_jax.pretrain.input_pipeline import RunImages
from rdc_jax.pretrain.objectives import Objective
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime import checksums, processes
from rdc_jax.runtime.errors import UserError

_ROWS_A_DEVICE = 64


def check(objective: Objective, options: Options) -> None:
    """Refuse objectives that need more than what the network gives.

    Raises:
      UserError: It says which.
    """
    if not getattr(objective, "takes_embedded", False):
        raise UserError(
            f"config.method={options.method} works on images or within the network, "
            "which --config.frozen_views keeps as it is: train a head on its features "
            "first (gnn, gnn+lrp, tpn, relation, matching), then this with "
            "--config.frozen_views=0 and --config.init_from= that run"
        )


def embed_images(images: RunImages, model: Model, options: Options) -> RunImages:
    """Give what the head takes of a network in the place of images, from a cache.

    Training images are seen in ``options.frozen_views`` versions: as at test, then by
    random crops, jitter and mirror images, which are functions of the seed and of the
    image's place in its data set. Images of validation are seen as at test.

    Args:
      images: Decoded.
      model: The network, with the head that is to be trained.
      options: Of the run.
    """
    head, size = model.head, options.image_size
    kind: Inputs = head.inputs  # type: ignore[union-attr]
    layout = processes.make_layout(jax.local_devices())
    on_all = jax.device_put(model, layout.replicated)

    def embed(pixels: PixelCache, views: int) -> PixelCache:
        described = f"{kind} of {views} versions, seed {options.seed}, {options.dtype}"
        made = functools.partial(versions, kind, size, views, options.seed)
        rows = feature_cache(
            pixels,
            functools.partial(jax.jit(made), on_all),
            weights_fingerprint=checksums.of_json([model.fingerprint, described]),
            transform=f"train transform: {size}; {described}",
            cache_dir=images.cache_dir,
            batch_size=_ROWS_A_DEVICE * jax.local_device_count(),
            sharding=layout.sharded,
            beside=(pixels.aspects, np.arange(len(pixels))),
        )
        return dataclasses.replace(pixels, images=rows)

    held_out = images.held_out and embed(images.held_out, 1)
    if held_out is not None:
        held_out = dataclasses.replace(held_out, images=held_out.images[:, 0])
    base = embed(images.base, options.frozen_views)
    return images._replace(base=base, held_out=held_out)


def versions(
    kind: Inputs,
    size: int,
    views: int,
    seed: int,
    model: Model,
    images: UInt8[ArrayLike, "b h w 3"],
    aspects_b: Float32[ArrayLike, " b"],
    places_b: Int[ArrayLike, " b"],
) -> Float[Array, "b {views} ..."]:
    """What a network makes of versions of each image."""
    images, places_b = jnp.asarray(images), jnp.asarray(places_b)
    seen = [test_batch(images, size)]
    for view in range(1, views):
        key = jax.random.fold_in(jax.random.key(seed), view)
        keys_b = jax.vmap(functools.partial(jax.random.fold_in, key))(places_b)
        seen.append(train_batch(keys_b, images, size, aspect=aspects_b))
    return jnp.stack([model.inputs(kind, x)[0] for x in seen], axis=1)
