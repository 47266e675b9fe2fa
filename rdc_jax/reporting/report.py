"""Writes ``report.html`` of a work directory."""

import importlib.util
import logging
import pathlib

from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import write_text

REPORT = "report.html"

_log = logging.getLogger(__name__)

# What the extra installs, by the names they are imported by.
_EXTRA = ("jinja2", "matplotlib", "sklearn")
_INSTALL = "pip install 'rdc-jax[report]'"


def write(
    workdir: str | pathlib.Path, out: str | pathlib.Path | None = None
) -> pathlib.Path:
    """Write the results of a run as one page.

    Args:
      workdir: Folder of a finished run.
      out: The file; by default ``report.html`` in the work directory.

    Returns:
      Where the page is.

    Raises:
      UserError: A package or the results are missing, or the file cannot be written.
    """
    if lacking := _lacking():
        raise UserError(f"the report needs {', '.join(lacking)}: {_INSTALL}")
    # Only here: it imports the packages of the extra.
    from rdc_jax.reporting import page

    path = pathlib.Path(out or pathlib.Path(workdir) / REPORT)
    text = page.render(pathlib.Path(workdir))
    if not path.parent.is_dir():
        raise UserError(f"{path.parent} is no folder: make it, or give another --out")
    write_text(path, text, "give another --out")
    return path


def after_run(workdir: str | pathlib.Path) -> None:
    """End a run with its report, or say how to get one."""
    if _lacking():
        _log.info(
            "for a report with figures: %s, then python -m rdc_jax.reporting %s",
            *(_INSTALL, workdir),
        )
    else:
        _log.info("report: %s", write(workdir))


def _lacking() -> list[str]:
    return [name for name in _EXTRA if importlib.util.find_spec(name) is None]
