"""The vmapped, jitted program lowers for every kind of accelerator, on any machine."""

import functools

import jax
import pytest
from jax import export

import rdc_jax


@pytest.mark.parametrize("subspace", ["tanh", "gaussian"])
def test_rdc_lowers_for_cpu_cuda_and_tpu(subspace):
    params = rdc_jax.RDCParams(subspace=subspace)
    fn = jax.jit(jax.vmap(functools.partial(rdc_jax.rdc, num_classes=5, params=params)))
    shapes = (
        jax.ShapeDtypeStruct((16, 5, 512), "float32"),
        jax.ShapeDtypeStruct((16, 5), "int32"),
        jax.ShapeDtypeStruct((16, 75, 512), "float32"),
    )
    exported = export.export(fn, platforms=["cpu", "cuda", "tpu"])(*shapes)
    assert set(exported.platforms) == {"cpu", "cuda", "tpu"}
