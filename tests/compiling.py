"""How the tests compile: in little time, and once for all processes and runs.

What is compiled is kept in ``.cache/jax``, in a folder for each jax, processor and set
of flags. Tests ask what is computed, not how fast, so most compile with few
optimisations; those of exactness take the fixture ``optimised``.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import uuid
from collections.abc import Iterator
from importlib import metadata

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_DEVICES = "--xla_force_host_platform_device_count"
_MOST_BYTES = 2 << 30

# For processes that a test starts.
ENVIRONMENT = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}

# Beside few optimisations: the former emitters of fused loops, and one module for all,
# take a third of the time to compile.
_QUICK = {
    "xla_cpu_use_fusion_emitters": "False",
    "xla_cpu_parallel_codegen_split_count": "1",
}


def _processor() -> str:
    """What decides which instructions a program may be compiled to."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "".join(sorted({x for x in lines if x.startswith(("model name", "flags"))}))


def xla_flags(devices: int) -> str:
    """XLA_FLAGS as they were given, with so many fake devices."""
    given = os.environ.get("XLA_FLAGS", "").split()
    others = [flag for flag in given if not flag.startswith(_DEVICES)]
    return " ".join([*others, f"{_DEVICES}={devices}"])


def folder() -> str:
    """Where all that is compiled is kept: of this jax, processor and flags only."""
    jax, jaxlib = (metadata.version(name) for name in ("jax", "jaxlib"))
    known = "\n".join([jaxlib, _processor(), platform.machine(), xla_flags(0)])
    name = f"{jax}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"
    return str(_ROOT / ".cache" / "jax" / name)


def environment(devices: int = 1) -> dict[str, str]:
    """Variables of a program that a test starts."""
    return {**os.environ, "XLA_FLAGS": xla_flags(devices), **kept_in(folder())}


def kept_in(folder: str) -> dict[str, str]:
    """Variables of processes that share what they compile."""
    return {
        **ENVIRONMENT,
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def set_up() -> None:
    """Settings of all tests of this process, before the first of them."""
    import jax  # Here, since XLA_FLAGS come before it.

    jax.config.update("jax_compilation_cache_dir", folder())
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    share_safely()
    _add_quick_options()
    _compile(quickly=True)


def _add_quick_options() -> None:
    """Let XLA take less time wherever jax asks for few optimisations."""
    import jax
    from jax._src import compiler

    get = compiler.get_compile_options

    @functools.wraps(get)
    def get_compile_options(*args, **kwargs):
        options = get(*args, **kwargs)
        if jax.config.read("jax_disable_most_optimizations"):
            options.env_option_overrides += list(_QUICK.items())
        return options

    compiler.get_compile_options = get_compile_options


def _compile(*, quickly: bool) -> None:
    import jax

    jax.config.update("jax_disable_most_optimizations", quickly)
    # A part of the key of what this process has compiled, as the other is not. On CPU
    # it is of no further effect.
    jax.config.update("jax_xla_profile_version", int(quickly))


def share_safely() -> None:
    """Let several processes write to the folder, also such as are killed meanwhile.

    jax writes in place; others, and later runs, would read what is there of an entry.
    """
    from jax._src import lru_cache

    def put(self, key: str, value: bytes) -> None:
        path = pathlib.Path(str(self.path)) / f"{key}-cache"
        if not path.exists():
            part = path.parent / f"{uuid.uuid4().hex}.part"
            try:
                part.write_bytes(value)
                part.replace(path)
            except OSError:  # A full disk, real or a test's: it is compiled again.
                part.unlink(missing_ok=True)

    lru_cache.LRUCache.put = put


def clear_if_large() -> None:
    """Begin anew when years of changes have filled the folder."""
    path = _ROOT / ".cache" / "jax"
    if sum(x.stat().st_size for x in path.rglob("*") if x.is_file()) > _MOST_BYTES:
        shutil.rmtree(path)


@contextlib.contextmanager
def fully() -> Iterator[None]:
    """Compile as for users; nothing is reused that was compiled quickly.

    A fixture (``optimised``) or the decorator of a test: ``@compiling.fully()``.
    """
    _compile(quickly=False)
    try:
        yield
    finally:
        _compile(quickly=True)
