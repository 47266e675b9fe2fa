"""Compiling is told, and what is compiled is found again."""

import os
import pathlib
import subprocess
import sys
import time

import compiling
import jax
import pytest

from rdc_jax.runtime.compiled import keep_compiled, say_if_slow

_PROGRAM = """
import jax, jax.numpy as jnp
from rdc_jax.runtime.compiled import keep_compiled
print(keep_compiled())
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((8, 8)))
print(jax.config.values["jax_compilation_cache_max_size"])
"""


def start(**variables):
    """Run the program as a user does, with nothing said of JAX's own cache."""
    known = {k: v for k, v in compiling.environment().items() if "CACHE" not in k}
    known["PYTHONPATH"] = str(pathlib.Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**known, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_programs_are_kept_in_a_bounded_folder_of_their_processor(tmp_path):
    folder, most = start(RDC_JAX_CACHE_DIR=str(tmp_path))
    assert pathlib.Path(folder).parent == tmp_path and int(most) == 256 * 2**20
    assert any(path.name.startswith("jit_") for path in pathlib.Path(folder).iterdir())


def test_a_cache_that_jax_was_given_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("RDC_JAX_CACHE_DIR", str(tmp_path / "own"))
    given = jax.config.values["jax_compilation_cache_dir"]
    assert given is not None  # By these tests.
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] == given
    assert not (tmp_path / "own").exists()


@pytest.fixture
def nothing_given():
    """As for users, who gave JAX no folder."""
    given = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", given)


def test_a_place_that_cannot_be_written_is_no_obstacle(nothing_given, monkeypatch):
    monkeypatch.setenv("RDC_JAX_CACHE_DIR", os.devnull)
    assert keep_compiled() is None
    assert jax.config.values["jax_compilation_cache_dir"] is None


def test_long_compiling_is_told(caplog):
    with caplog.at_level("INFO"), say_if_slow("compiling", seconds=0.01):
        time.sleep(0.2)
    with caplog.at_level("INFO"), say_if_slow("quick"):
        pass
    assert [record.message for record in caplog.records] == [
        "compiling …",
        "compiling: 0 s",
    ]
