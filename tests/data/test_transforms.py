"""The device transforms against a plain Pillow pipeline with the same parameters."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image, ImageEnhance

from rdc_jax.data import transforms
from rdc_jax.data.transforms import Augmentation, Box

MEAN = np.array([0.485, 0.456, 0.406])
STD = np.array([0.229, 0.224, 0.225])


def photo(seed: int, height: int = 90, width: int = 120) -> np.ndarray:
    """A smooth picture with some grain: what resampling meets in practice."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    noisy = smooth + rng.normal(0, 12, smooth.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def pillow_resize(picture: Image.Image, size: int) -> Image.Image:
    """Rows first, then columns: the order Pillow always took until version 13."""
    rows = picture.resize((size, picture.height), Image.Resampling.BILINEAR)
    return rows.resize((size, size), Image.Resampling.BILINEAR)


def pillow_augment(image: np.ndarray, drawn: Augmentation, size: int) -> np.ndarray:
    left, top, width, height = (int(edge) for edge in drawn.box)
    picture = Image.fromarray(image).crop((left, top, left + width, top + height))
    picture = pillow_resize(picture, size)
    kinds = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
    for kind, factor in zip(kinds, drawn.factors, strict=True):
        picture = kind(picture).enhance(float(factor))
    pixels = np.asarray(picture)
    return pixels[:, ::-1] if drawn.mirror else pixels


def pillow_test(image: np.ndarray, size: int) -> np.ndarray:
    edge = int(size * 1.15)
    margin = round((edge - size) / 2)
    picture = pillow_resize(Image.fromarray(image), edge)
    picture = picture.crop((margin, margin, margin + size, margin + size))
    return (np.asarray(picture) / 255.0 - MEAN) / STD


def assert_levels_agree(ours: np.ndarray, theirs: np.ndarray, share: float) -> None:
    """Never more than one level apart, and apart in at most ``share`` of pixels."""
    difference = np.abs(np.asarray(ours, np.float64) - theirs)
    assert difference.max() <= 1
    assert (difference > 0).mean() <= share


@pytest.mark.parametrize(
    "box",
    [
        Box(0, 0, 120, 90),  # shrink
        Box(11, 7, 30, 21),  # enlarge
        Box(50, 3, 17, 80),  # one of each
        Box(119, 89, 1, 1),  # one pixel
    ],
)
def test_resampling_is_pillows(box: Box) -> None:
    image = photo(0)
    ours = _resample_to_48(image, jax.tree.map(jnp.int32, box))
    corner = (box.left, box.top, box.left + box.width, box.top + box.height)
    theirs = pillow_resize(Image.fromarray(image).crop(corner), 48)
    # Where a ratio of sizes is simple, exact halves are common: rounding may differ.
    assert_levels_agree(ours, np.asarray(theirs), share=0.06)


@jax.jit
def _resample_to_48(image, box):
    return transforms.resample(image, box, 48)


@pytest.mark.parametrize(
    ("ours", "pillow"),
    [
        (transforms.brightness, ImageEnhance.Brightness),
        (transforms.contrast, ImageEnhance.Contrast),
        (transforms.colour, ImageEnhance.Color),
    ],
)
def test_enhancements_are_pillows(ours, pillow) -> None:
    image = photo(1)
    enhance = jax.jit(ours)
    for factor in (0.6, 0.93, 1.0, 1.4):
        theirs = np.asarray(pillow(Image.fromarray(image)).enhance(factor))
        assert_levels_agree(enhance(np.float32(image), factor), theirs, share=0.01)


@pytest.mark.parametrize("enhance", [transforms.contrast, transforms.colour])
def test_colours_may_lie_along_any_axis(enhance) -> None:
    image = jnp.float32(photo(1))
    expected = enhance(image, 0.7)
    for axis in (0, 1):
        planes = jnp.moveaxis(image, 2, axis)
        ours = jnp.moveaxis(enhance(planes, 0.7, axis=axis), axis, 2)
        np.testing.assert_array_equal(ours, expected)


@functools.partial(jax.jit, static_argnames="size")
def draw_and_apply(keys, images, size):
    edges = images.shape[1:3]
    drawn = jax.vmap(lambda key: transforms.sample_augmentation(key, *edges))(keys)
    apply = jax.vmap(lambda image, one: transforms.augment(image, one, size))
    return drawn, apply(images, drawn)


def assert_augmentation_is_pillows(images: np.ndarray, size: int) -> None:
    keys = jax.random.split(jax.random.key(0), len(images))
    drawn, ours = jax.tree.map(np.asarray, draw_and_apply(keys, images, size))
    rows = [jax.tree.map(lambda leaf, i=i: leaf[i], drawn) for i in range(len(images))]
    theirs = [
        pillow_augment(image, row, size)
        for image, row in zip(images, rows, strict=True)
    ]
    assert {bool(row.mirror) for row in rows} == {True, False}
    difference = np.abs(ours - np.stack(theirs))
    # A level lost in the resize can grow by 1.4 in each enhancement.
    assert difference.max() <= 5
    assert difference.mean() < 0.1
    assert (difference > 0).mean() < 0.05


def test_augmentation_is_pillows_at_the_same_parameters() -> None:
    images = np.stack([photo(seed) for seed in range(24)])
    assert_augmentation_is_pillows(images, size=40)


@pytest.mark.parametrize("name", ["cub", "chestx"])
def test_augmentation_of_real_photographs_is_pillows(shared_dir, name: str) -> None:
    paths = sorted((shared_dir / "data" / name).glob("*/*.jpg"))[::40][:24]
    images = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    assert_augmentation_is_pillows(np.stack(images), size=84)


def test_train_transform_is_the_normalised_augmentation() -> None:
    @jax.jit
    def both(key, image):
        drawn = transforms.sample_augmentation(key, *image.shape[:2])
        levels = transforms.augment(image, drawn, 24)
        return levels, transforms.train_transform(key, image, 24)

    levels, ours = both(jax.random.key(3), photo(2))
    expected = (np.asarray(levels) / 255 - MEAN) / STD
    np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("size", [32, 100])
def test_test_transform_is_pillows(size: int) -> None:
    image = photo(4)
    ours = jax.jit(lambda image: transforms.test_transform(image, size))(image)
    levels = (np.asarray(ours) - pillow_test(image, size)) * STD * 255
    assert np.abs(levels).max() < 1.01
    assert (np.abs(levels) > 0.01).mean() < 0.06


def test_a_cache_at_the_resize_size_leaves_the_test_transform_unchanged() -> None:
    image = photo(5)
    transform = jax.jit(lambda image: transforms.test_transform(image, 48))
    cached = jax.jit(lambda image: transforms.resize(image, 55))(image)
    assert transforms.resize_size(48) == 55
    np.testing.assert_array_equal(
        transform(np.asarray(cached).astype(np.uint8)), transform(image)
    )


def test_batches_are_their_images() -> None:
    images = np.stack([photo(seed, 40, 40) for seed in range(3)])
    keys = jax.random.split(jax.random.key(1), 3)
    one_level = 1.01 / 255 / STD.min()
    train = jax.jit(lambda key, image: transforms.train_transform(key, image, 32))
    trained = transforms.train_batch(keys, images, 32)
    np.testing.assert_allclose(
        trained[1], train(keys[1], images[1]), atol=4 * one_level
    )
    test = jax.jit(lambda image: transforms.test_transform(image, 32))
    tested = transforms.test_batch(images, 32)
    np.testing.assert_allclose(tested[1], test(images[1]), atol=one_level)
    assert not np.allclose(trained[0], trained[1], atol=0.1)


def test_results_are_float32_in_every_mode() -> None:
    images = np.zeros((2, 40, 40, 3), np.uint8)
    keys = jax.random.split(jax.random.key(1), 2)
    with jax.enable_x64(True):
        trained = jax.eval_shape(
            lambda *a: transforms.train_batch(*a, 32), keys, images
        )
        tested = jax.eval_shape(lambda *a: transforms.test_batch(*a, 32), images)
    assert trained.dtype == tested.dtype == jnp.float32


def test_old_style_keys_and_any_aspect_share_one_trace() -> None:
    images = np.zeros((3, 40, 40, 3), np.uint8)
    keys = jax.vmap(jax.random.PRNGKey)(np.arange(3))
    transforms.train_batch.clear_cache()
    for aspect in (1.0, 1.3):
        transforms.train_batch(keys, images, 32, aspect=aspect)
    assert transforms.train_batch._cache_size() == 1
