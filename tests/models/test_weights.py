"""Backbones as one small file."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from rdc_jax import models
from rdc_jax.models import weights
from rdc_jax.models.load import read_checkpoint
from rdc_jax.runtime.errors import UserError


@pytest.fixture(scope="module")
def variables():
    image = jax.ShapeDtypeStruct((1, 32, 32, 3), np.float32)
    shapes = jax.eval_shape(models.create("resnet10").init, jax.random.key(0), image)
    rng = np.random.default_rng(0)
    tree = jax.tree.map(lambda x: rng.random(x.shape, np.float32), shapes)
    return {part: {"backbone": inner} for part, inner in tree.items()}


@pytest.fixture(scope="module")
def path(variables, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "net.safetensors"
    metadata = {"arch": "resnet10", "image_size": 84, "config": {"not": "kept"}}
    variables["params"]["head"] = {"kernel": np.ones((512, 3))}
    weights.write(path, variables, metadata)
    return path


def test_kernels_come_back_rounded_and_vectors_exact(path, variables):
    read, metadata = read_checkpoint(path)
    assert metadata == {"arch": "resnet10", "image_size": 84}
    assert read.keys() == variables.keys() and "head" not in read["params"]

    def check(got, want):
        assert got.dtype == np.float32
        rounded = want.astype(jnp.bfloat16).astype(jnp.float32)
        np.testing.assert_array_equal(got, rounded if want.ndim > 1 else want)

    for part in read:
        jax.tree.map(check, read[part]["backbone"], variables[part]["backbone"])


def test_the_file_is_half_of_the_weights(path, variables):
    inner = [tree["backbone"] for tree in variables.values()]
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(inner))
    assert path.stat().st_size < 0.51 * whole


def test_it_is_a_backbone(path):
    backbone = models.load_backbone(path)
    assert backbone.arch == "resnet10"
    assert backbone(np.zeros((1, 32, 32, 3), np.float32)).shape == (1, 512)


def test_the_command_line_converts(path, tmp_path, capsys):
    out = tmp_path / "copy.safetensors"
    weights.main([str(path), str(out), "--image_size=112"])
    assert capsys.readouterr().out == f"{out}: resnet10, 9.9 MB\n"
    assert weights.read(out)[1]["image_size"] == 112
    assert [entry.name for entry in tmp_path.iterdir()] == [out.name]
    with pytest.raises(UserError, match=r"must end in \.safetensors or \.tar"):
        weights.main([str(path), str(tmp_path / "copy.bin")])


def test_the_command_line_writes_for_torch_too(path, tmp_path, capsys):
    pytest.importorskip("torch", reason="needs the extra [torch]")
    out = tmp_path / "net.tar"
    weights.main([str(path), str(out)])
    assert capsys.readouterr().out == f"{out}: resnet10, 19.7 MB\n"
    got, want = read_checkpoint(out)[0], read_checkpoint(path)[0]
    jax.tree.map(np.testing.assert_array_equal, got, want)
    with pytest.raises(UserError, match=r"cannot write .*no/net\.tar"):
        weights.main([str(path), str(tmp_path / "no/net.tar")])


def test_other_files_are_refused(tmp_path):
    other = tmp_path / "other.safetensors"
    safetensors.numpy.save_file({"weight": np.ones(3)}, other)
    with pytest.raises(UserError, match="is no backbone of rdc_jax"):
        weights.read(other)
    other.write_bytes(b"damaged")
    with pytest.raises(UserError, match="cannot be read"):
        weights.read(other)


def test_a_folder_that_is_not_there_is_told(variables, tmp_path):
    with pytest.raises(UserError, match="cannot write"):
        weights.write(tmp_path / "no/net.safetensors", variables, {"arch": "resnet10"})


def test_packaged_weights_are_found_or_their_lack_is_told(path, monkeypatch):
    monkeypatch.setattr(weights, "PACKAGED", path)
    assert weights.packaged() == path
    monkeypatch.setattr(weights, "PACKAGED", path.with_name("none"))
    with pytest.raises(UserError, match="has no none: give a checkpoint"):
        weights.packaged()


def test_the_packaged_weights_have_a_name():
    assert read_checkpoint("packaged")[1] == read_checkpoint(weights.PACKAGED)[1]
    assert read_checkpoint("packaged")[1]["arch"] == "resnet10"
