"""The work directory: one run at a time, and always the same run."""

import json
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import filelock

from rdc_jax.runtime.config_values import flat
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import write_text

RECORD = "run.json"

# Paths may change; fingerprints hold what is there.
_PATHS = frozenset(
    f"config.{name}" for name in ("data_dir", "cache_dir", "init_from", "plugins")
)


@contextmanager
def claim(workdir: pathlib.Path) -> Iterator[None]:
    """Hold a work directory, made if it is missing, for the block.

    Raises:
      UserError: It cannot be written, or another run holds it.
    """
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(workdir / ".lock").acquire(timeout=0)
    except filelock.Timeout:
        raise UserError(
            f"another run is using {workdir}: wait for it, or take another --workdir"
        ) from None
    except OSError as error:
        raise UserError(
            f"cannot write to the workdir {workdir}: {error.strerror}; "
            "take another --workdir, or mend its permissions"
        ) from error
    with lock:
        yield


def check_same_run(
    workdir: pathlib.Path,
    before: dict[str, Any],
    now: dict[str, Any],
    *,
    free: frozenset[str],
) -> None:
    """Refuse to go on with a run that is now a function of something else.

    Fields that are ``free``, such as ``config.data_dir``, may differ.

    Raises:
      UserError: Naming the first field that differs.
    """
    old, new = flat(before), flat(json.loads(json.dumps(now)))
    for name in sorted((old.keys() | new.keys()) - free):
        if old.get(name) != new.get(name):
            raise UserError(
                f"{workdir} holds a run with {name}={old.get(name)!r}, this one has "
                f"{new.get(name)!r}: set it back, or take another --workdir"
            )


def record_run(workdir: pathlib.Path, record: dict[str, Any]) -> None:
    """Note what the run is, or refuse when the directory belongs to another one.

    The record has the config, and fingerprints of the files that it names.

    Raises:
      UserError: Naming the first field that differs.
    """
    path = workdir / RECORD
    if not path.exists():
        write_text(path, json.dumps(record, indent=1) + "\n", "take another --workdir")
        return
    try:
        before = json.loads(path.read_text())
        check_same_run(workdir, before, record, free=_PATHS)
    except (ValueError, AttributeError):
        raise UserError(
            f"{path} is damaged: restore it from a copy, or take another --workdir"
        ) from None
