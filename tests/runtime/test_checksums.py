"""Digests depend on content, and on nothing else."""

import hashlib

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from rdc_jax.runtime import checksums


def test_digests_never_change():
    """A digest that changed would throw away every cache that anyone has."""
    tree = {"dense": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3)}}
    digests = [
        checksums.of_json({"b": [1, 2.5, None, True], "a": "é"}),
        checksums.of_array(np.arange(4, dtype=np.int16)),
        checksums.of_tree(tree),
    ]
    assert [digest[:16] for digest in digests] == [
        "0b8cc543e984d4d7",
        "219f7a7475488adb",
        "85c95e8f050dc677",
    ]


def test_json_ignores_key_order_and_sees_values():
    digest = checksums.of_json({"a": 1, "b": {"c": 2, "d": 3}})
    assert digest == checksums.of_json({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest != checksums.of_json({"a": 1, "b": {"c": 2, "d": 4}})


def test_json_refuses_what_has_no_stable_text():
    with pytest.raises(ValueError, match="JSON"):
        checksums.of_json({"lam": float("nan")})
    with pytest.raises(TypeError):
        checksums.of_json({"set": {1, 2}})


@pytest.mark.parametrize(
    "same",
    [
        np.arange(12, dtype=">f4").reshape(3, 4),
        np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)),
        np.arange(24, dtype=np.float32)[::2].reshape(3, 4) / 2,
        jnp.arange(12, dtype=jnp.float32).reshape(3, 4),
    ],
    ids=["big-endian", "column-major", "strided", "jax"],
)
def test_array_layout_does_not_count(same):
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert checksums.of_array(same) == checksums.of_array(plain)


def test_array_dtype_shape_and_values_count():
    plain = np.zeros((2, 3), np.float16)
    others = [
        plain.astype(ml_dtypes.bfloat16),
        plain.astype(np.int16),
        plain.T,
        plain.reshape(6),
        plain + 1,
    ]
    digests = {checksums.of_array(array) for array in [plain, *others]}
    assert len(digests) == 6


def test_tree_sees_names_and_values():
    tree = {"conv": {"kernel": np.ones(3)}, "bn": {"scale": np.ones(2)}}
    renamed = {"conv": {"weight": np.ones(3)}, "bn": {"scale": np.ones(2)}}
    changed = {"conv": {"kernel": np.ones(3)}, "bn": {"scale": np.zeros(2)}}
    reordered = {"bn": tree["bn"], "conv": tree["conv"]}
    assert checksums.of_tree(tree) == checksums.of_tree(reordered)
    assert checksums.of_tree(tree) != checksums.of_tree(renamed)
    assert checksums.of_tree(tree) != checksums.of_tree(changed)


def test_file_is_its_bytes(tmp_path):
    path = tmp_path / "weights.tar"
    path.write_bytes(b"abc" * 100_000)
    assert checksums.of_file(path) == hashlib.sha256(b"abc" * 100_000).hexdigest()
