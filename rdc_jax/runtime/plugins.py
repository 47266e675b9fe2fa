"""Python files of the user's own, which register what they bring by name."""

import importlib.util
import pathlib
import sys
from typing import Any

from rdc_jax.runtime.errors import UserError


def load_object(text: str) -> Any:
    """Give what a Python file of the user's own calls by a name.

    Args:
      text: ``FILE.py:NAME``.

    Raises:
      UserError: There is no such file or name, or the file failed.
    """
    file, _, name = text.rpartition(":")
    module = sys.modules[_module_name(load_plugin(file))]
    if not hasattr(module, name):
        raise UserError(f"{file} has no {name!r}: give a function that it defines")
    return getattr(module, name)


def load_plugin(path: str | pathlib.Path) -> pathlib.Path:
    """Run a Python file that registers something; a second time does nothing.

    Args:
      path: The file.

    Returns:
      Its absolute path.

    Raises:
      UserError: There is no such file, or it failed.
    """
    path = pathlib.Path(path).expanduser().resolve()
    module_name = _module_name(path)
    if module_name in sys.modules:
        return path
    if path.suffix != ".py" or not path.is_file():
        raise UserError(f"plugin {path} is not there: give the path of a Python file")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # Dataclasses look their module up.
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if isinstance(error, UserError) or not isinstance(error, Exception):
            raise
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"plugin {path} failed with {reason}") from error
    return path


def _module_name(path: str | pathlib.Path) -> str:
    return f"rdc_jax_plugin_{path}"
