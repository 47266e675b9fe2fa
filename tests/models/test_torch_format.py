"""Checkpoints of the field's torch code: what is read, written, and refused."""

import os
import pickle
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models import create, torch_format
from rdc_jax.models.heads import Classifier
from rdc_jax.models.torch_pickle import read_tensors
from rdc_jax.runtime.errors import UserError

torch = pytest.importorskip("torch", reason="needs the extra [torch]")


@pytest.fixture(scope="module")
def variables():
    model = Classifier(create("resnet10"), 7)
    tree = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
    return jax.tree.map(np.asarray, tree)


@pytest.fixture(scope="module")
def written(variables, tmp_path_factory):
    path = tmp_path_factory.mktemp("torch") / "399.tar"
    torch_format.write(path, variables, arch="resnet10", epoch=399)
    return path


def assert_equal_trees(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_what_is_written_is_read_again_bit_for_bit(written, variables):
    got, metadata = torch_format.read(written)
    assert_equal_trees(got, variables)
    assert metadata == {"arch": "resnet10", "epoch": 399, "num_classes": 7}


def test_a_head_that_is_not_linear_is_left_out(variables, tmp_path):
    params = {**variables["params"], "head": {"map": {"kernel": np.ones((512, 4))}}}
    path = tmp_path / "400.tar"
    torch_format.write(path, {**variables, "params": params}, arch="resnet10")
    got, metadata = torch_format.read(path)
    assert_equal_trees(got["params"], {"backbone": variables["params"]["backbone"]})
    assert "num_classes" not in metadata


def test_torch_reads_what_is_written(written):
    from models.torch_reference import Classifier as Network

    saved = torch.load(written, weights_only=True)
    assert saved["epoch"] == 399
    Network(7).load_state_dict(saved["state"])  # strict: every key, no other


@pytest.mark.parametrize("prefix", ["", "module.feature.", "feature."])
@pytest.mark.parametrize("new_format", [True, False])
def test_every_variant_is_read(written, variables, tmp_path, prefix, new_format):
    state = torch.load(written, weights_only=True)["state"]
    state = {
        key.replace("feature.", prefix) if key.startswith("feature.") else key: value
        for key, value in state.items()
    }
    path = tmp_path / "variant.tar"
    torch.save(
        {"epoch": 1, "state": state},
        path,
        _use_new_zipfile_serialization=new_format,
    )
    assert_equal_trees(torch_format.read(path)[0], variables)


def test_a_bare_state_dict_without_classifier_is_read(written, variables, tmp_path):
    state = torch.load(written, weights_only=True)["state"]
    trunk = {key: value for key, value in state.items() if "trunk" in key}
    torch.save(trunk, tmp_path / "bare.pt")
    got, metadata = torch_format.read(tmp_path / "bare.pt")
    assert metadata == {"arch": "resnet10"} and "head" not in got["params"]
    assert_equal_trees(got["params"]["backbone"], variables["params"]["backbone"])


@pytest.mark.parametrize("new_format", [True, False])
def test_tensors_of_every_kind_are_read(tmp_path, new_format):
    tensors = {
        "transposed": torch.arange(6.0).reshape(2, 3).T,
        "part": torch.arange(10, dtype=torch.float64)[3:7],
        "half": torch.ones(2, dtype=torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "scalar": torch.tensor(5),
        "empty": torch.empty(0, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    path = tmp_path / "kinds.pt"
    torch.save(tensors, path, _use_new_zipfile_serialization=new_format)
    got = read_tensors(path)
    for name, tensor in tensors.items():
        want = tensor.detach().float().numpy()
        np.testing.assert_array_equal(np.asarray(got[name], np.float32), want)


class Malicious:
    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("wrap", ["zip", "pickle"])
def test_code_in_a_checkpoint_does_not_run(tmp_path, wrap):
    trap = tmp_path / "trap"
    Malicious.path = str(trap)
    content = pickle.dumps({"state": Malicious()})
    path = tmp_path / "evil.tar"
    if wrap == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", content)
    else:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"mkdir.*nothing of it was run"):
        torch_format.read(path)
    assert not trap.exists()
    pickle.loads(content)  # The trap is real.
    assert trap.exists()


def test_damaged_and_foreign_files_are_told_in_one_line(written, tmp_path):
    path = tmp_path / "bad.tar"
    content = written.read_bytes()
    for bad in (content[: len(content) // 2], b"", b"not a checkpoint" * 10):
        path.write_bytes(bad)
        with pytest.raises(UserError, match=r"bad\.tar is no torch checkpoint"):
            torch_format.read(path)
    torch.save({"state": {"fc.weight": torch.ones(2, 2)}}, path)
    with pytest.raises(UserError, match=r"has no trunk\.0\.weight"):
        torch_format.read(path)


def test_another_architecture_names_the_key(written, tmp_path):
    saved = torch.load(written, weights_only=True)
    path = tmp_path / "other.tar"
    for key, value, message in (
        (
            "feature.trunk.4.C1.weight",
            torch.ones(32, 64, 3, 3),
            r"trunk\.4\.C1\.weight",
        ),
        ("feature.trunk.9.C1.weight", torch.ones(1), "5 blocks"),
    ):
        torch.save({"state": {**saved["state"], key: value}}, path)
        with pytest.raises(UserError, match=message):
            torch_format.read(path)
    del saved["state"]["feature.trunk.7.BN2.bias"]
    torch.save(saved, path)
    with pytest.raises(UserError, match=r"lacks trunk\.7\.BN2\.bias"):
        torch_format.read(path)


def test_architectures_without_a_torch_format_are_refused(variables, tmp_path):
    with pytest.raises(UserError, match="resnet10 and resnet18, not for resnet12"):
        torch_format.write(tmp_path / "x.tar", variables, arch="resnet12")
