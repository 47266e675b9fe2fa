"""A small network and a small task that are adapted to each other."""

import jax
import jax.numpy as jnp
import numpy as np
import tiny

from rdc_jax.methods import Task
from rdc_jax.models.model import wrap

WAY, SHOT, QUERY = 3, 2, 4
NETWORK = tiny.TinyNet()


def make_model():
    shape = jnp.zeros((1, tiny.SIZE, tiny.SIZE, 3))
    start = jax.jit(NETWORK.init)(jax.random.key(0), shape)
    # Running statistics that are not those of any batch, as a checkpoint's.
    stats = {"norm": {"mean": jnp.full(8, 0.05), "var": jnp.full(8, 0.4)}}
    return wrap(NETWORK, {"params": start["params"], "batch_stats": stats})


def make_task():
    rng = np.random.default_rng(0)
    labels_n = np.r_[np.repeat(np.arange(WAY), SHOT), np.tile(np.arange(WAY), QUERY)]
    colour_c = rng.integers(60, 190, (WAY, 1, 1, 3))
    noise = rng.integers(-60, 60, (len(labels_n), 20, 20, 3))
    images = (colour_c[labels_n] + noise).clip(0, 255).astype(np.uint8)
    s = WAY * SHOT
    arrays = map(jnp.asarray, (images[:s], labels_n[:s], images[s:]))
    return Task(*arrays, num_classes=WAY, key=jax.random.key(3))
