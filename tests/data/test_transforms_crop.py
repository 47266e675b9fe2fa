"""The random crop: torchvision's distribution, and its fallback."""

import functools
import math

import jax
import numpy as np
import pytest

from rdc_jax.data.transforms import Box, sample_crop


@functools.cache
def sample_many(height: int, width: int, count: int = 4000, aspect: float = 1.0) -> Box:
    keys = jax.random.split(jax.random.key(0), count)
    draw = jax.vmap(lambda key: sample_crop(key, height, width, aspect=aspect))
    return jax.tree.map(np.asarray, jax.jit(draw)(keys))


def torchvision_crop(rng, height: int, width: int) -> tuple[int, int, int, int]:
    """The rule of RandomResizedCrop, as its documentation states it."""
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1.0)
        ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return rng.integers(width - w + 1), rng.integers(height - h + 1), w, h
    if width / height < 3 / 4:
        w, h = width, round(width / (3 / 4))
    elif width / height > 4 / 3:
        w, h = round(height * 4 / 3), height
    else:
        w, h = width, height
    return (width - w) // 2, (height - h) // 2, w, h


@pytest.mark.parametrize(("height", "width"), [(96, 96), (60, 100)])
def test_crops_follow_torchvisions_distribution(height: int, width: int) -> None:
    rng = np.random.default_rng(0)
    theirs = np.array([torchvision_crop(rng, height, width) for _ in range(4000)])
    ours = np.stack(sample_many(height, width), axis=1)
    error = theirs.std(axis=0) * math.sqrt(2 / 4000)
    assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4 * error)
    np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), rtol=0.08)


@pytest.mark.parametrize(("height", "width"), [(96, 96), (60, 100), (7, 9), (1, 1)])
def test_crops_lie_inside_the_image(height: int, width: int) -> None:
    box = sample_many(height, width)
    assert box.left.min() >= 0
    assert box.top.min() >= 0
    assert box.width.min() >= 1
    assert box.height.min() >= 1
    assert (box.left + box.width).max() <= width
    assert (box.top + box.height).max() <= height


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [(10, 400, (193, 0, 13, 10)), (400, 10, (0, 193, 10, 13))],
)
def test_no_fit_falls_back_to_the_largest_central_crop(
    height: int, width: int, expected: tuple[int, int, int, int]
) -> None:
    # At this shape no area and ratio in range can fit.
    boxes = np.stack(sample_many(height, width, count=50), axis=1)
    np.testing.assert_array_equal(boxes, [expected] * 50)


def test_aspect_restores_the_ratios_of_a_squeezed_original() -> None:
    # 100 x 60 squeezed into 96 x 96, against crops of the original itself.
    squeezed = sample_many(96, 96, aspect=100 / 60)
    original = sample_many(60, 100)
    for ours, theirs in (
        (squeezed.width * 100 / 96, original.width),
        (squeezed.height * 60 / 96, original.height),
    ):
        assert abs(ours.mean() - theirs.mean()) < 4 * theirs.std() * (2 / 4000) ** 0.5
    ignored = sample_many(96, 96).width * 100 / 96
    assert abs(ignored.mean() - original.width.mean()) > 3
