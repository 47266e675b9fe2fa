"""Position embeddings at another resolution, resampled as torch does it."""

import functools

import numpy as np
from jaxtyping import Array, Float


def resampled(
    grid_hwd: Float[Array, "h w d"], height: int, width: int, *, antialias: bool
) -> Float[Array, "{height} {width} d"]:
    """``torch.nn.functional.interpolate(mode="bicubic", align_corners=False)``.

    Not ``jax.image.resize``, whose cubic is another one, and which shrinks with
    antialiasing.

    Args:
      grid_hwd: One vector a patch.
      height: Patches of a column of the result.
      width: Patches of a row.
      antialias: Torch's argument, which changes the cubic too.
    """
    if grid_hwd.shape[:2] == (height, width):
        return grid_hwd
    rows = matrix(grid_hwd.shape[0], height, antialias=antialias)
    columns = matrix(grid_hwd.shape[1], width, antialias=antialias)
    # In float32 whatever the network computes in: positions are added to everything.
    return (
        columns
        @ (rows @ grid_hwd.reshape(len(grid_hwd), -1)).reshape(
            height, *grid_hwd.shape[1:]
        )
    ).astype(grid_hwd.dtype)


@functools.cache
def matrix(before: int, after: int, *, antialias: bool) -> Float[np.ndarray, "o i"]:
    """The linear map of one axis.

    >>> print(matrix(8, 2, antialias=False)[0, :4].round(4))
    [-0.0938  0.5938  0.5938 -0.0938]
    """
    scale = before / after
    centre_o1 = (np.arange(after)[:, None] + 0.5) * scale
    weight_oi = np.zeros((after, before))
    if antialias:
        # Pillow's: the cubic grows with the step, and is cut off at the edge.
        wide = max(scale, 1.0)
        first_o1 = np.maximum((centre_o1 - 2 * wide + 0.5).astype(int), 0)
        last_o1 = np.minimum((centre_o1 + 2 * wide + 0.5).astype(int), before)
        place_i = np.arange(before)
        inside_oi = (place_i >= first_o1) & (place_i < last_o1)
        weight_oi = _cubic((place_i + 0.5 - centre_o1) / wide, a=-0.5) * inside_oi
        weight_oi /= weight_oi.sum(axis=1, keepdims=True)
    else:
        # Four taps; those beyond the edge fall on the last pixel.
        left_o1 = np.floor(centre_o1 - 0.5).astype(int)
        tap_o4 = left_o1 + np.arange(-1, 3)
        value_o4 = _cubic(tap_o4 + 0.5 - centre_o1, a=-0.75)
        np.add.at(
            weight_oi,
            (np.arange(after)[:, None], np.clip(tap_o4, 0, before - 1)),
            value_o4,
        )
    return weight_oi.astype(np.float32)


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys' cubic convolution kernel."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))
