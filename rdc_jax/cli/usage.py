"""What ``--help`` of the programs with a config prints."""

import pathlib
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from absl import flags
from ml_collections import config_flags

from rdc_jax.runtime.config_values import flat
from rdc_jax.runtime.text import two_columns

# The flags of such a program in the order of the help, and what they take.
_SHOWN = {
    "config": "FILE[:VARIANT]",
    "workdir": "DIR",
    "list": "",
    "quiet": "",
    "verbose": "",
    "debug": "",
    "coordinator": "HOST:PORT",
    "num_processes": "N",
    "process_id": "I",
}


def help_text(about: str) -> str:
    """Describe a program by its docstring, its flags and the fields of its config."""
    known = flags.FLAGS
    pairs = [
        (f"--{name}={takes}" if takes else f"--{name}", known[name].help)
        for name, takes in _SHOWN.items()
    ]
    path = pathlib.Path(config_flags.get_config_filename(known["config"]))
    title = f"fields of {path.parent.name}/{path.name}, set by --config.FIELD=VALUE\n"
    title += "(the page above says what each of them does):"
    lines = [about.strip(), "", "flags:", two_columns(pairs), "", title]
    return "\n".join([*lines, two_columns(_groups(known["config"].value))])


def _groups(config: Any) -> Iterator[tuple[str, str]]:
    """The config's own fields, then those of each group in it."""
    fields = config.to_dict()
    inner = {name: group for name, group in fields.items() if isinstance(group, dict)}
    plain = {name: value for name, value in fields.items() if name not in inner}
    for name, group in {"": plain, **inner}.items():
        if group:
            yield f"{name}." if name else "", " ".join(words(group))


def words(fields: Mapping[str, Any]) -> list[str]:
    """Give fields and values as one would type them.

    >>> words({"seed": 0, "rdc": {"k": 10}, "title": "Two words", "dir": ""})
    ['seed=0', 'rdc.k=10', "title='Two words'", "dir=''"]
    """
    return [f"{name}={shlex.quote(str(x))}" for name, x in flat(fields).items()]
