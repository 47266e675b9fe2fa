"""Much of everything: right answers, in the memory that docs/scaling.md states.

What is measured there is called here at its largest size.
"""

import json
import sys

import numpy as np
import pytest
from torture import effort

import rdc_jax
from benchmarks import scaling
from rdc_jax.data.filelist import open_filelist
from rdc_jax.runtime.errors import UserError

pytestmark = pytest.mark.slow
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
THOUSAND = 1000


def _record(megabytes, what):
    effort.count(f"MB beside the inputs: {what}", round(megabytes))


def test_ten_thousand_episodes_in_one_call_stay_within_the_budget():
    call, megabytes = scaling.episodes_call(10_000)
    _record(megabytes, "10,000 episodes in one call")
    assert megabytes < 64
    got_eqc = call()
    inputs = scaling.tasks(10_000, way=5, shot=1, query=4, d=64)
    for episode in (0, 4_999, 9_999):
        want_qc = rdc_jax.rdc(*(x[episode] for x in inputs), num_classes=5)
        np.testing.assert_allclose(
            got_eqc[episode], want_qc.class_distances, atol=1e-4, rtol=0
        )


def test_a_fifty_way_twenty_shot_task_takes_ten_matrices_of_its_size():
    way, shot, query = 50, 20, 15
    call, megabytes = scaling.episodes_call(1, way=way, shot=shot, query=query)
    _record(megabytes, "a task of 50 ways, 20 shots and 15 queries")
    n = way * (shot + query)
    assert megabytes < 10 * 4 * n**2 / 2**20
    predicted_q = np.argmin(call()[0], axis=1)
    np.testing.assert_array_equal(predicted_q, np.repeat(np.arange(way), query))


@needs_linux
def test_a_hundred_thousand_images_take_twice_their_caches():
    length = 100_000
    call, _ = scaling.images_call(length)
    megabytes = scaling.peak_of(call)
    _record(megabytes, "100,000 images of 200 classes through both caches")
    stored = length * scaling.EDGE**2 * 3 * (1 + 4)  # Pixels, and features of them.
    assert megabytes < 2 * stored / 2**20
    indices_en, feat_end = call()
    assert indices_en.max() > 99_000
    assert len(np.unique(indices_en % scaling.CLASSES)) == 200
    want_end = np.broadcast_to((indices_en % 256)[..., None], feat_end.shape)
    np.testing.assert_array_equal(feat_end, want_end)


@pytest.fixture(scope="module")
def million(tmp_path_factory):
    """A folder with a million images by name, and the names: links to a thousand."""
    root = tmp_path_factory.mktemp("million")
    (root / "0").mkdir()
    for i in range(THOUSAND):
        (root / "0" / f"{i}.png").touch()
        if i:
            (root / f"{i}").symlink_to("0")
    names = [f"{c}/{i}.png" for c in range(THOUSAND) for i in range(THOUSAND)]
    return root, names


def _list(million, *, last=None):
    root, names = million
    names = names if last is None else [*names[:-1], last]
    labels = [row % scaling.CLASSES for row in range(len(names))]
    content = {"label_names": scaling.CLASS_NAMES, "image_names": names}
    path = root / "list.json"
    path.write_text(json.dumps({**content, "image_labels": labels}))
    return path


@needs_linux
def test_a_list_of_a_million_images_is_opened(million):
    path, found = _list(million), []
    megabytes = scaling.peak_of(lambda: found.append(open_filelist(path)))
    _record(megabytes, "a file list of a million images")
    assert megabytes < 1000
    (source,) = found
    assert len(source) == THOUSAND**2 and len(source.class_names) == 200
    assert source.locate(THOUSAND**2 - 1).endswith("/999/999.png")
    assert (np.bincount(source.labels) == THOUSAND**2 / 200).all()


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("999/1000.png", "1 of 1000000 images are missing, first '999/1000.png'"),
        ("0/../7/7.png", "image_names has .*7/7.png' 2 times"),
        ("../x.png", "'../x.png' leads outside"),
    ],
    ids=["missing", "repeated", "outside"],
)
def test_one_fault_among_a_million_images_is_one_clear_line(million, last, message):
    with pytest.raises(UserError, match=message) as caught:
        open_filelist(_list(million, last=last))
    assert "\n" not in str(caught.value)
