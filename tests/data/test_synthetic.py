"""The built-in image family: what it promises, and how hard it is."""

import jax
import numpy as np
import pytest
from PIL import Image

from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.synthetic import DOMAINS, open_synthetic
from rdc_jax.data.synthetic import images as render
from rdc_jax.data.synthetic.objects import BODIES, PARTS
from rdc_jax.runtime.errors import UserError

TARGETS = [name for name in DOMAINS if name != "objects"]


@pytest.fixture(scope="module")
def pixels() -> dict[str, np.ndarray]:
    """One block of every test class of every domain, ``[class, image, h, w, 3]``."""
    result = {}
    for name in DOMAINS:
        source = open_synthetic(name, per_class=render.BLOCK)
        images = source.images(range(len(source)))
        result[name] = images.reshape(-1, render.BLOCK, *images.shape[1:])
    return result


def few_shot_accuracy(features_cid: np.ndarray, *, shot: int = 1) -> float:
    """Nearest prototype on normalised features, 5-way, 200 tasks, in percent."""
    rng = np.random.default_rng(0)
    features = features_cid / np.linalg.norm(features_cid, axis=2, keepdims=True)
    hits = []
    for _ in range(200):
        task = features[rng.choice(len(features), 5, replace=False)]
        task = task[:, rng.permutation(task.shape[1])]
        prototypes, queries = task[:, :shot].mean(axis=1), task[:, shot : shot + 15]
        hits.append((queries @ prototypes.T).argmax(axis=2) == np.arange(5)[:, None])
    return 100 * float(np.mean(hits))


def gradient_histograms(images: np.ndarray) -> np.ndarray:
    """Directions of edges in 3 x 3 regions and mean colours: a feature by hand."""
    grey = images.mean(axis=-1)
    down, right = np.gradient(grey, axis=(-2, -1))
    strength = np.hypot(down, right)
    direction = (np.arctan2(down, right) % np.pi * 8 / np.pi).astype(int) % 8
    votes = np.stack([strength * (direction == d) for d in range(8)], axis=-1)
    regions = [
        votes[:, :, i : i + 16, j : j + 16].mean(axis=(2, 3))
        for i in (0, 8, 16)
        for j in (0, 8, 16)
    ]
    edges = np.sqrt(np.concatenate(regions, axis=-1))
    colours = images.mean(axis=(2, 3)) / 32
    return np.concatenate([edges, colours], axis=-1)


def test_a_domain_is_a_source_of_images() -> None:
    source = open_synthetic("glyphs", per_class=3)
    assert isinstance(source, ImageSet)
    assert source.class_names == DOMAINS["glyphs"].class_names
    assert len(source) == len(source.labels) == 3 * len(source.class_names)
    assert source.labels.dtype == np.int32
    np.testing.assert_array_equal(source.labels[:7], [0, 0, 0, 1, 1, 1, 2])
    image = source.image(4)
    assert image.shape == (32, 32, 3)
    assert image.dtype == np.uint8
    assert source.locate(4) == "synthetic:glyphs/sign 02/1 (seed 0)"
    with pytest.raises(IndexError):
        source.image(len(source))


def test_an_image_depends_on_nothing_but_its_identity() -> None:
    many = open_synthetic("glyphs", per_class=40)
    expected = many.images(range(len(many)))
    render.render_block.cache_clear()
    few = open_synthetic("glyphs", per_class=37, split="all")
    again = few.images(np.arange(len(few))[::-1])[::-1]
    kept = np.arange(len(many)) % 40 < 37
    np.testing.assert_array_equal(again, expected[kept])


def test_images_differ_between_indices_classes_and_seeds() -> None:
    images = open_synthetic("glyphs", per_class=40).images(range(80))
    other = open_synthetic("glyphs", per_class=40, seed=1).images(range(80))
    assert len(np.unique(np.concatenate([images, other]), axis=0)) == 160


def test_double_precision_mode_changes_no_pixel() -> None:
    expected = open_synthetic("glyphs").image(5)
    render.render_block.cache_clear()
    with jax.enable_x64(True):
        np.testing.assert_array_equal(open_synthetic("glyphs").image(5), expected)


def test_a_picture_is_the_same_at_any_resolution() -> None:
    small = open_synthetic("glyphs", size=32).images(range(8))
    large = open_synthetic("glyphs", size=84).images(range(8))
    for coarse, fine in zip(small, large, strict=True):
        shrunk = Image.fromarray(fine).resize((32, 32), Image.Resampling.BOX)
        # Sharpness of edges and camera noise are all that depends on the size.
        assert np.abs(np.asarray(shrunk, float) - coarse).mean() < 8


def test_the_splits_of_objects_share_no_class_but_every_trait() -> None:
    names = {s: open_synthetic("objects", split=s).class_names for s in ("base", "val")}
    names["novel"] = open_synthetic("objects", split="novel").class_names
    assert [len(n) for n in names.values()] == [64, 16, 16]
    assert len(set().union(*names.values())) == len(BODIES) * len(PARTS)
    for split in names.values():
        bodies, parts = zip(*(n.split(" with ") for n in split), strict=True)
        assert set(bodies) == set(BODIES)
        assert set(parts) == set(PARTS)


def test_targets_have_enough_classes_and_nothing_to_train_on() -> None:
    assert len(TARGETS) >= 4
    for name in TARGETS:
        assert len(open_synthetic(name).class_names) >= 12
        with pytest.raises(UserError, match=f"{name} has no train split, only test"):
            open_synthetic(name, split="train")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "clouds"}, "unknown synthetic domain 'clouds': use one of objects, "),
        ({"split": "tset"}, "unknown split 'tset'"),
        ({"size": 4}, "size 4 of a synthetic source: use 8 to 1024"),
        ({"seed": -1}, "seed -1 of a synthetic source"),
        ({"per_class": 0}, "per_class 0 of a synthetic source"),
    ],
)
def test_mistakes_are_named(options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_synthetic(**({"name": "glyphs"} | options))


def test_the_fingerprint_tells_sources_apart_and_renders_nothing() -> None:
    render.render_block.cache_clear()
    sources = [
        open_synthetic("objects"),
        open_synthetic("objects", split="val"),
        open_synthetic("objects", seed=1),
        open_synthetic("objects", size=48),
        open_synthetic("objects", per_class=7),
        open_synthetic("tiles"),
    ]
    assert len({source.fingerprint() for source in sources}) == len(sources)
    assert render.render_block.cache_info().misses == 0


def test_a_change_of_the_pictures_needs_a_new_version(pixels) -> None:
    # When this fails, raise render.VERSION, so that caches of old pictures are not
    # taken for new ones, and write the new numbers here.
    assert render.VERSION == 1
    expected = {
        "objects": (125.65, 46.4),
        "textures": (121.1, 50.6),
        "glyphs": (151.63, 68.57),
        "blobs": (180.72, 62.02),
        "tiles": (103.0, 40.78),
    }
    found = {name: (p.mean(), p.std()) for name, p in pixels.items()}
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], numbers, atol=0.05, err_msg=name)


def test_domains_can_be_told_apart_at_a_glance(pixels) -> None:
    features = np.concatenate(
        [gradient_histograms(p).reshape(-1, 75)[::4][:96] for p in pixels.values()]
    )
    domain = np.repeat(np.arange(len(pixels)), 96)
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (domain[distances.argmin(axis=1)] == domain).mean() > 0.8


@pytest.mark.parametrize("name", TARGETS)
def test_tasks_are_neither_trivial_nor_hopeless(pixels, name: str) -> None:
    images = pixels[name]
    raw = images.reshape(*images.shape[:2], -1) / 255 - 0.5
    assert few_shot_accuracy(raw) < 60
    by_hand = gradient_histograms(images)
    assert 25 < few_shot_accuracy(by_hand) < 85
    # Some signal adds up: five examples tell more than one.
    assert few_shot_accuracy(by_hand, shot=5) > few_shot_accuracy(by_hand)
