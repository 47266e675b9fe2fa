"""The pixel cache holds what the source's images become at one size."""

import logging
import pathlib

import numpy as np
import pytest
from data.fakes import FakeSource
from PIL import Image

from rdc_jax.data.open import open_source
from rdc_jax.data.pixels import pixel_cache
from rdc_jax.runtime.errors import UserError


def _resized(image, size):
    """PIL called plainly."""
    square = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)
    return np.array(square)


def test_images_are_resized_by_pil_in_order(tmp_path):
    source = FakeSource(70)
    pixels = pixel_cache(source, 12, tmp_path)
    assert pixels.images.shape == (70, 12, 12, 3)
    for i in range(70):
        np.testing.assert_array_equal(pixels.images[i], _resized(source.image(i), 12))
    np.testing.assert_array_equal(pixels.labels, source.labels)
    np.testing.assert_array_equal(pixels.rows, np.arange(70))
    np.testing.assert_allclose(
        pixels.aspects, source.sizes[:, 1] / source.sizes[:, 0], rtol=1e-6
    )
    assert (pixels.name, pixels.split) == ("fake", "test")
    assert pixels.class_names == source.class_names
    assert len(pixels) == 70


def test_images_are_decoded_once(tmp_path):
    source = FakeSource(40)
    first = pixel_cache(source, 12, tmp_path)
    assert sorted(source.decoded) == list(range(40))
    again = pixel_cache(source, 12, tmp_path)
    assert len(source.decoded) == 40
    assert isinstance(again.images, np.memmap)
    np.testing.assert_array_equal(again.images, first.images)
    assert again.fingerprint == first.fingerprint


def test_other_content_is_decoded_again(tmp_path):
    old = pixel_cache(FakeSource(40, seed=0), 12, tmp_path)
    new = pixel_cache(FakeSource(40, seed=1), 12, tmp_path)
    assert new.fingerprint != old.fingerprint
    assert (new.images != old.images).any()


def test_sizes_and_sources_have_their_own_files(tmp_path):
    sources = [FakeSource(40), FakeSource(40, name="tfds:fake/rgb")]
    caches = [pixel_cache(one, size, tmp_path) for one in sources for size in (8, 9)]
    assert len({cache.fingerprint for cache in caches}) == 2  # same content, two sizes
    assert sorted(path.name for path in tmp_path.glob("*.npy")) == [
        "fake-test-8px.npy",
        "fake-test-9px.npy",
        "tfds_fake_rgb-test-8px.npy",
        "tfds_fake_rgb-test-9px.npy",
    ]


def test_unreadable_images_are_one_error_that_counts_them(tmp_path):
    source = FakeSource(100, broken=[3, 40, 41, 99])
    with pytest.raises(UserError) as caught:
        pixel_cache(source, 12, tmp_path)
    message = str(caught.value)
    assert "4 of 100 images of fake cannot be read" in message
    assert "fake/3.jpg, fake/40.jpg, fake/41.jpg, ...;" in message
    assert "python -m rdc_jax.data verify" in message
    assert "\n" not in message


def test_unreadable_images_can_be_left_out_without_decoding_again(tmp_path, caplog):
    source = FakeSource(100, broken=[3, 40])
    with pytest.raises(UserError):
        pixel_cache(source, 12, tmp_path)
    source.decoded.clear()
    with caplog.at_level(logging.WARNING):
        pixels = pixel_cache(source, 12, tmp_path, skip_unreadable=True)
    assert not source.decoded
    assert "2 of 100 images cannot be read" in caplog.text
    assert len(pixels) == len(pixels.images) == len(pixels.aspects) == 98
    assert set(range(100)) - set(pixels.rows) == {3, 40}
    np.testing.assert_array_equal(pixels.labels, source.labels[pixels.rows])
    for place in (2, 3, 39, 97):
        expected = _resized(source.image(int(pixels.rows[place])), 12)
        np.testing.assert_array_equal(pixels.images[place], expected)


def test_nothing_readable_is_an_error_even_when_skipping(tmp_path):
    source = FakeSource(10, broken=range(10))
    with pytest.raises(UserError, match="10 of 10 images"):
        pixel_cache(source, 12, tmp_path, skip_unreadable=True)
    assert not list(tmp_path.glob("*.npy"))


def _peak_beyond(call):
    """Bytes that the process took at its peak, beyond what it held before."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # start a new peak
    before, _ = _memory("VmRSS"), call()
    return _memory("VmHWM") - before


def _memory(field):
    status = pathlib.Path("/proc/self/status").read_text()
    (line,) = (x for x in status.splitlines() if x.startswith(field))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(
    not pathlib.Path("/proc/self/clear_refs").exists(), reason="needs Linux"
)
def test_memory_stays_flat_while_a_cache_is_built(tmp_path):
    source, size = FakeSource(10_000), 64
    taken = _peak_beyond(lambda: pixel_cache(source, size, tmp_path))
    whole = len(source) * size * size * 3
    assert taken < 0.4 * whole


def test_progress_is_quiet_when_nobody_watches(tmp_path, capsys):
    pixel_cache(FakeSource(40), 12, tmp_path)
    assert capsys.readouterr() == ("", "")


def test_real_photographs(shared_dir, tmp_path):
    source = open_source(str(shared_dir / "data" / "isic"))
    pixels = pixel_cache(source, 32, tmp_path)
    assert pixels.images.shape == (927, 32, 32, 3)
    assert len(pixels.class_names) == 7
    np.testing.assert_array_equal(pixels.images[500], _resized(source.image(500), 32))
