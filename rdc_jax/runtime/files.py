"""Files that appear whole or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO

from rdc_jax.runtime.errors import UserError


@contextlib.contextmanager
def replacing(path: pathlib.Path, advice: str) -> Iterator[BinaryIO]:
    """Open a file to be written beside another, whose place it takes at the end.

    A kill leaves the old file or the new one.

    Raises:
      UserError: The disk is full, or the folder cannot be written. The message ends
        with ``advice``.
    """
    scratch = path.with_name(f".{path.name}.part")
    try:
        with scratch.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        reason = error.strerror or error
        raise UserError(f"cannot write {path}: {reason}; {advice}") from error


def write_text(path: pathlib.Path, text: str, advice: str) -> None:
    """Write a text as a whole; see ``replacing``."""
    with replacing(path, advice) as file:
        file.write(text.encode())
