"""Decompositions in batches: the same numbers, and no waiting for ever."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.core import decompositions


@pytest.fixture(scope="module")
def matrices():
    x_emn = np.random.default_rng(0).normal(size=(7, 5, 9)).astype(np.float32)
    return jnp.asarray(x_emn @ x_emn.swapaxes(1, 2) + np.eye(5, dtype=np.float32))


def test_batches_equal_single_calls(matrices):
    values_en, vectors_enn = jax.jit(jax.vmap(decompositions.eigh))(matrices)
    factors_enn = jax.vmap(decompositions.cholesky)(matrices)
    for matrix, value, vector in zip(matrices, values_en, vectors_enn, strict=True):
        np.testing.assert_allclose((vector * value) @ vector.T, matrix, atol=3e-5)
    np.testing.assert_allclose(factors_enn, np.linalg.cholesky(matrices), atol=1e-6)


def test_vmap_over_vmap_and_over_one_argument(matrices):
    twice = jnp.stack([matrices, 2 * matrices])
    values = jax.vmap(jax.vmap(lambda m: decompositions.eigh(m)[0]))(twice)
    np.testing.assert_allclose(values[1], 2 * values[0], rtol=1e-5)


@pytest.mark.parametrize("size", [1, 5, 8, 33])
def test_inverse_of_a_lower_triangular_matrix(size):
    rng = np.random.default_rng(size)
    matrix_bb = np.tril(rng.standard_normal((size, size))) + 3 * np.eye(size)
    inverse_bb = decompositions.invert_lower(jnp.asarray(matrix_bb, jnp.float32))
    np.testing.assert_allclose(inverse_bb, np.linalg.inv(matrix_bb), atol=1e-5)
    assert (np.triu(inverse_bb, 1) == 0).all()


PROGRAM = """
import jax, numpy as np, rdc_jax
from jax.sharding import Mesh, PartitionSpec as P
assert jax.device_count() == 2
x = np.random.default_rng(0).standard_normal((16, 80, 512), np.float32)

def both(x):
    labels, other = np.arange(5), rdc_jax.RDCParams(dim=32)
    one = rdc_jax.rdc(x[:5], labels, x[5:], 5).class_distances
    return one, rdc_jax.rdc(x[:5], labels, x[5:], 5, params=other).class_distances

mapped = jax.shard_map(
    jax.vmap(both), mesh=Mesh(jax.devices(), "e"), in_specs=P("e"), out_specs=P("e"),
    check_vma=False,
)
for out in jax.jit(mapped)(x):
    assert np.isfinite(out).all()
"""


def test_as_many_devices_as_threads_do_not_wait_for_ever():
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "NPROC": "2"}
    environment.pop("XLA_FLAGS", None)  # Of these tests: fake devices.
    subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=300
    )
