"""Networks and images so small that a test can train on them."""

import functools

import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from PIL import Image

from rdc_jax.models.conv import Conv
from rdc_jax.models.norm import BatchNorm
from rdc_jax.models.resnet import BasicBlock, ResNet

SIZE = 16


class TinyNet(nn.Module):
    """One convolution, one batch norm, one dense layer: 8 features."""

    dtype: jnp.dtype = jnp.dtype("float32")
    conv: str = "auto"

    @nn.compact
    def __call__(self, images, *, train=False):
        x = Conv(8, 3, 2, self.dtype, name="conv")(images.astype(self.dtype))
        x = nn.relu(BatchNorm(dtype=self.dtype, name="norm")(x, train=train))
        features = nn.Dense(8, dtype=self.dtype, name="dense")(x.mean((1, 2)))
        return features.astype(jnp.float32), {}


TinyResNet = functools.partial(
    ResNet,
    (functools.partial(BasicBlock, 4), functools.partial(BasicBlock, 8, 2)),
    stem=False,
)
"""Two residual blocks, which take a norm: 8 features."""


def write_images(root, *, per_class=12):
    """Write a source called ``tiny``: 4 base and 3 held-out classes of noise."""
    rng = np.random.default_rng(0)
    for split, classes in (("train", 4), ("val", 3)):
        for c in range(classes):
            folder = root / "tiny" / split / f"class{c}"
            folder.mkdir(parents=True)
            colour = rng.integers(40, 216, 3)
            for i in range(per_class):
                noise = rng.integers(-40, 40, (SIZE, SIZE, 3))
                image = Image.fromarray((colour + noise).clip(0, 255).astype(np.uint8))
                image.save(folder / f"{i}.png")
    return root
