"""The record of a run: one JSON object a line, and TensorBoard."""

import contextlib
import json
import pathlib
from typing import Any

from tensorboardX import SummaryWriter

from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import write_text

METRICS = "metrics.jsonl"


class MetricsLog:
    """Appends to ``metrics.jsonl`` and to TensorBoard's files.

    A line is out of this process's hands when ``write`` returns, and is written before
    the checkpoint of its step; so the lines up to a checkpoint's step are all there,
    and those after it, which a resumed run will write again, are cut off.
    """

    def __init__(self, workdir: pathlib.Path, *, step: int):
        """Open the record of a run that continues after ``step`` steps."""
        path = workdir / METRICS
        if path.exists():  # A kill leaves the old lines or the new ones.
            lines = [line for line in read_metrics(workdir) if line["step"] <= step]
            text = "".join(json.dumps(line) + "\n" for line in lines)
            write_text(path, text, "make room, then run the same command")
        self._file = path.open("a", encoding="utf-8")
        board = str(workdir / "tensorboard")
        try:
            self._board = SummaryWriter(board, purge_step=step + 1)
        except OSError:
            self._file.close()
            raise

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, *unused: object) -> None:
        with contextlib.suppress(OSError):  # A full disk has been reported.
            self._file.close()
            self._board.close()

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Append one line of names and numbers.

        Raises:
          UserError: The disk is full.
        """
        try:
            self._file.write(json.dumps({"step": step, **values}) + "\n")
            self._file.flush()
            for name, value in values.items():
                self._board.add_scalar(name, value, step)
        except OSError as error:
            raise UserError(
                f"cannot write {self._file.name}: {error.strerror}; make room, then "
                "run the same command"
            ) from error


def read_metrics(workdir: str | pathlib.Path) -> list[dict[str, Any]]:
    """Read the lines of a run's record; torn and unreadable ones are left out.

    Raises:
      UserError: The directory has no record.
    """
    path = pathlib.Path(workdir) / METRICS
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(
            f"cannot read {path} ({error.strerror}): give the work directory of a run"
        ) from error
    return [line for text in lines if (line := _parse(text)) is not None]


def _parse(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:  # No JSON, or no UTF-8.
        return None
    whole = isinstance(line, dict) and isinstance(line.get("step"), int)
    return line if whole else None
