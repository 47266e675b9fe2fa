"""Compiled programs are cached on disk, and slow compilation is logged."""

import contextlib
import hashlib
import logging
import os
import pathlib
import platform
import sys
import threading
import time
from collections.abc import Iterator

import jax

_log = logging.getLogger(__name__)

VARIABLE = "RDC_JAX_CACHE_DIR"
_MOST_BYTES = 256 * 2**20
_LEAST_SECONDS = 0.2  # What compiles faster is not worth a file.


def keep_compiled() -> pathlib.Path | None:
    """Keep compiled programs in a folder of at most 256 MiB, and look there first.

    The folder is ``$RDC_JAX_CACHE_DIR``, or else the place where the system keeps
    caches: ``~/.cache/rdc_jax`` on Linux. It has one folder for each version of JAX and
    kind of processor. What was used least recently is deleted first. A folder that JAX
    itself was given (``JAX_COMPILATION_CACHE_DIR``) is left as it is.

    Returns:
      The folder; ``None`` where it is JAX's own affair, or cannot be written.
    """
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return None
    known = f"{jax.__version__} {platform.machine()} {_processor()}"
    root = os.environ.get(VARIABLE) or _caches() / "rdc_jax"
    folder = pathlib.Path(root, hashlib.sha256(known.encode()).hexdigest()[:12])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", _MOST_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_SECONDS)
    return folder


def _caches() -> pathlib.Path:
    """Where this system keeps a user's caches."""
    home = pathlib.Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


def _processor() -> str:
    """What decides which instructions a program is compiled to.

    Homes are shared by machines, and a program of another processor may not run.
    """
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return " ".join(sorted({x for x in lines if x.startswith(("model name", "flags"))}))


@contextlib.contextmanager
def say_if_slow(work: str, seconds: float = 2.0) -> Iterator[None]:
    """Log that ``work`` goes on after a while, and how long it took at its end.

    The first call of a jitted function compiles, and says nothing while it does.
    """
    start = time.monotonic()
    timer = threading.Timer(seconds, _log.info, [f"{work} …"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if (taken := time.monotonic() - start) > seconds:
        _log.info("%s: %.0f s", work, taken)
