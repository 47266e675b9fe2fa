"""Tests that ask what is computed, not how fast, need not wait for the compiler."""

import contextlib
from collections.abc import Iterator

# For processes that a test starts.
ENVIRONMENT = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}


def kept_in(folder: str) -> dict[str, str]:
    """Variables of processes that share what they compile."""
    return {
        **ENVIRONMENT,
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


@contextlib.contextmanager
def quickly(folder: str | None = None) -> Iterator[None]:
    """Compile with few optimisations, which takes half the time.

    Args:
      folder: Where to keep all that is compiled, for this process and others.
    """
    import jax  # Here, since the settings of all tests come before it.

    settings: dict[str, object] = {"jax_disable_most_optimizations": True}
    if folder:
        settings["jax_compilation_cache_dir"] = folder
        settings["jax_persistent_cache_min_compile_time_secs"] = 0
    before = {name: jax.config.values[name] for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
