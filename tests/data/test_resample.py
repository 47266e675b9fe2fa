"""The filter of a resize, against plain loops over pixels."""

import functools

import jax
import numpy as np
import pytest
from PIL import Image

from rdc_jax.data.transforms import Box, resample
from rdc_jax.data.transforms.resample import filter_strips

# Shrinking, nearly 1:1, enlarging, one strip and several, full and partly used.
_SIZES = [(120, 48), (33, 32), (257, 224), (20, 70), (64, 96), (300, 31), (5, 1)]


def _oracle(start, length, in_size, out_size):
    """A triangle around each output pixel's centre, cut off at the crop's border."""
    scale = length / out_size
    radius = max(scale, 1.0)
    weight_oi = np.zeros((out_size, in_size))
    for o in range(out_size):
        for i in range(length):
            distance = abs(i + 0.5 - (o + 0.5) * scale)
            weight_oi[o, start + i] = max(0.0, 1.0 - distance / radius)
    return weight_oi / weight_oi.sum(axis=1, keepdims=True)


def _as_matrix(strips, in_size, out_size):
    first_t, weight_toi = (np.asarray(part) for part in strips)
    rows = []
    for first, weight_oi in zip(first_t, weight_toi, strict=True):
        assert 0 <= first <= in_size - weight_oi.shape[1]
        rows.append(np.zeros((len(weight_oi), in_size)))
        rows[-1][:, first : first + weight_oi.shape[1]] = weight_oi
    return np.concatenate(rows)[:out_size]


@pytest.mark.parametrize(("in_size", "out_size"), _SIZES)
def test_no_pixel_that_counts_is_outside_its_window(in_size, out_size):
    weights = jax.jit(
        functools.partial(filter_strips, in_size=in_size, out_size=out_size)
    )
    for length in sorted({1, 2, in_size // 3, out_size, in_size - 1, in_size}):
        if not 1 <= length <= in_size:
            continue
        for start in {0, (in_size - length) // 2, in_size - length}:
            ours = _as_matrix(weights(start, length), in_size, out_size)
            theirs = _oracle(start, length, in_size, out_size)
            np.testing.assert_allclose(ours, theirs, atol=2e-5)


@pytest.mark.parametrize(("in_size", "out_size"), _SIZES)
def test_whole_images_are_resized_as_by_pillow(in_size, out_size):
    shape = (in_size, in_size + 7, 3)
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    box = Box(left=3, top=0, width=in_size, height=in_size)
    ours = jax.jit(resample, static_argnums=2)(image, box, out_size)
    picture = Image.fromarray(image).crop((3, 0, 3 + in_size, in_size))
    # Rows first, then columns: the order Pillow always took until version 13.
    rows = picture.resize((out_size, in_size), Image.Resampling.BILINEAR)
    theirs = rows.resize((out_size, out_size), Image.Resampling.BILINEAR)
    difference = np.abs(np.asarray(ours) - np.asarray(theirs))
    assert difference.max() <= 2  # an exact half, rounded otherwise in both passes
    assert (difference > 1).mean() < 0.01
