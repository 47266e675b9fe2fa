"""Positions are resampled as torch resamples them."""

import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models.positions import resampled

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("after", [(3, 3), (7, 7), (4, 9), (16, 16)])
def test_positions_are_resampled_as_by_torch(after, antialias):
    grid_hwd = np.random.default_rng(0).normal(size=(5, 5, 6)).astype(np.float32)
    want = torch.nn.functional.interpolate(
        torch.tensor(grid_hwd).permute(2, 0, 1)[None],
        size=after,
        mode="bicubic",
        align_corners=False,
        antialias=antialias,
    )[0].permute(1, 2, 0)
    got = resampled(jnp.asarray(grid_hwd), *after, antialias=antialias)
    np.testing.assert_allclose(got, want.numpy(), atol=1e-5)


def test_the_same_size_changes_nothing():
    grid_hwd = jnp.ones((3, 3, 2))
    assert resampled(grid_hwd, 3, 3, antialias=True) is grid_hwd
