"""A network with weights of its own for each task, as fine-tuning has them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models.resnet import BasicBlock, ResNet

pytestmark = pytest.mark.usefixtures("compiled_quickly")

BLOCKS = (functools.partial(BasicBlock, 16), functools.partial(BasicBlock, 8, 2))


def test_tasks_under_vmap_equal_a_loop():
    model = ResNet(BLOCKS)
    images = jax.random.normal(jax.random.key(0), (3, 4, 40, 40, 3))
    keys = jax.random.split(jax.random.key(1), 3)
    variables = jax.jit(jax.vmap(model.init, (0, None)))(keys, images[0])

    @jax.jit
    @jax.grad
    def gradient(params, stats, images):
        inner = {"params": params, "batch_stats": stats}
        features, _ = model.apply(inner, images, train=True)
        return jnp.square(features).sum()

    params, stats = variables["params"], variables["batch_stats"]
    mapped = jax.jit(jax.vmap(gradient))(params, stats, images)
    for i in range(3):
        own = jax.tree.map(lambda x, i=i: x[i], (params, stats))
        for got, want in zip(
            jax.tree.leaves(mapped),
            jax.tree.leaves(gradient(*own, images[i])),
            strict=True,
        ):
            atol = 1e-4 * max(1.0, float(jnp.abs(want).max()))
            np.testing.assert_allclose(got[i], want, rtol=1e-3, atol=atol)
