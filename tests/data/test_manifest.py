"""Manifests survive the disk, and notice changes."""

import json

import numpy as np
import pytest

from rdc_jax.data.episodes import EpisodeSpec, sample_episodes
from rdc_jax.data.manifest import make_manifest, read_manifest
from rdc_jax.runtime.errors import UserError

_LABELS = np.repeat(np.arange(6), 20)
_SPEC = EpisodeSpec(way=3, shot=1, query=4, dirichlet=2.0)


@pytest.fixture
def path(tmp_path):
    manifest = make_manifest(
        _LABELS,
        _SPEC,
        seed=3,
        dataset="cub",
        episodes=range(5, 25),
        data_fingerprint="ab12",
    )
    manifest.write(tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def test_a_manifest_comes_back_as_it_was(path):
    manifest = read_manifest(path)
    expected = sample_episodes(
        _LABELS, _SPEC, seed=3, dataset="cub", episodes=range(5, 25)
    )
    for ours, theirs in zip(manifest.episodes, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert (manifest.spec, manifest.seed, manifest.dataset) == (_SPEC, 3, "cub")
    manifest.verify(_LABELS, data_fingerprint="ab12")


def test_one_changed_number_is_noticed(path):
    content = json.loads(path.read_text())
    content["episodes"]["indices"][3][2] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="was changed"):
        read_manifest(path)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"spec": {"way": 5'])
def test_other_files_are_refused(path, text):
    path.write_text(text)
    with pytest.raises(UserError, match="not an episode manifest"):
        read_manifest(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_manifest(tmp_path / "none.json")


def test_other_data_are_refused(path):
    manifest = read_manifest(path)
    with pytest.raises(UserError, match="another version of cub"):
        manifest.verify(_LABELS, data_fingerprint="cd34")
    with pytest.raises(UserError, match="not those of seed 3"):
        manifest.verify(_LABELS[::-1].copy(), data_fingerprint="ab12")
