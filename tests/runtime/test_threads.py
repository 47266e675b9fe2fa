"""LAPACK's threads."""

import jax
import jax.numpy as jnp
import threadpoolctl

from rdc_jax.runtime.threads import one_lapack_thread


def threads():
    return {
        library["filepath"]: library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    }


def test_only_scipy_s_lapack_is_limited_and_only_for_a_while():
    jnp.linalg.eigh(jnp.eye(3))[0].block_until_ready()
    for library in threadpoolctl.ThreadpoolController().lib_controllers:
        library.set_num_threads(2)
    before = threads()
    with one_lapack_thread():
        inside = threads()
        assert jax.jit(jnp.linalg.eigvalsh)(jnp.eye(3)).tolist() == [1, 1, 1]
    assert threads() == before
    limited = {path for path in before if inside[path] != before[path]}
    assert limited and all("scipy" in path for path in limited)
    assert all(inside[path] == 1 for path in limited)
