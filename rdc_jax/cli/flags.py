"""Flags of the programs; a wrong flag is an error of one line."""

import functools
import logging
import pathlib
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from absl import app, flags
from absl import logging as absl_logging
from ml_collections import config_flags

from rdc_jax.runtime.arguments import messages
from rdc_jax.runtime.config_values import flat
from rdc_jax.runtime.errors import UserError, guard
from rdc_jax.runtime.text import ready_stdout, two_columns

_log = logging.getLogger(__name__)
_HELP = {"--help", "-help", "-h"}
# Python's message about a value, and a clearer one.
_PLAINLY = {
    r"invalid literal for int\(\) with base 10: (.*)": r"give a whole number, not \1",
    r"could not convert string to float: (.*)": r"give a number, not \1",
}

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


def run(
    main: Callable[[], None], listing: Callable[[], str], *, about: str | None
) -> None:
    """Parse the flags and run a program; mistakes print one line and exit with 2.

    Adds ``--list``, ``--quiet``, ``--verbose``, ``--debug``, ``--compile_cache`` and
    a ``--help`` that begins with what the program is about.

    Args:
      main: The program, without arguments; it reads its flags itself.
      listing: What ``--list`` prints.
      about: The program's docstring.
    """
    flags.DEFINE_boolean(
        "list", False, "Print what can be asked for by name, and leave."
    )
    flags.DEFINE_boolean("quiet", False, "Say nothing but warnings, errors, results.")
    flags.DEFINE_boolean(
        "verbose", False, "Also print the config and what libraries log."
    )
    flags.DEFINE_boolean("debug", False, "Show the traceback of an error.")
    flags.DEFINE_boolean(
        "compile_cache",
        True,
        "Keep what is compiled for the next run (docs/scaling.md).",
    )

    def program() -> None:
        given = flags.FLAGS
        with messages(quiet=given.quiet, verbose=given.verbose, clock=True):
            if given.list:
                return _show(listing())
            if given.compile_cache:
                from rdc_jax.runtime import compiled  # imports jax: --help does without

                compiled.keep_compiled()
            main()

    app.run(
        lambda _: guard(program, debug=flags.FLAGS.debug),
        flags_parser=functools.partial(_parse, about or ""),
    )


def define_processes() -> Callable[[], tuple[str | None, int | None, int | None]]:
    """Define the flags of runs in several processes.

    Returns:
      Gives the arguments of ``processes.join_processes``, after parsing.
    """
    coordinator = flags.DEFINE_string(
        "coordinator",
        None,
        "Several processes: where process 0 listens; auto asks the cluster (Slurm, TPU "
        "pods, …), and needs no other flag.",
    )
    count = flags.DEFINE_integer("num_processes", None, "How many processes there are.")
    own = flags.DEFINE_integer("process_id", None, "Number of this process, from 0.")
    return lambda: (coordinator.value, count.value, own.value)


def define_config(default: str, help_text: str) -> flags.FlagHolder:
    """Define ``--config``, a config file with fields that flags can override.

    Args:
      default: Path of the file, with its argument after a colon.
      help_text: For ``--help``.

    Returns:
      The flag; give its value to ``config_values``.
    """
    folder = pathlib.Path(default).parent
    sys.argv = [_found(word, folder) for word in _joined(sys.argv)]
    try:  # Overrides are applied to the default right here, and may be mistaken.
        return config_flags.DEFINE_config_file("config", default, help_text)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        _fail(_explain(error))


def _joined(argv: list[str]) -> list[str]:
    """Make one flag of ``--config.checkpoints.NAME=PATH``: a config's names are fixed.

    >>> _joined(["x", "--config.checkpoints.a=1", "-v", "--config.checkpoints.b=2"])
    ['x', '-v', '--config.checkpoints=a=1,b=2']
    """
    start = "--config.checkpoints."
    pairs = [word.removeprefix(start) for word in argv if word.startswith(start)]
    rest = [word for word in argv if not word.startswith(start)]
    return [*rest, f"{start[:-1]}={','.join(pairs)}"] if pairs else argv


def _found(word: str, folder: pathlib.Path) -> str:
    """Let ``configs/eval.py`` name the package's own, where there is no such file."""
    start, flag, path = word.rpartition("--config=") if "=" in word else ("", "", word)
    named, own = path.partition(":")[0], folder.parent / path
    known = path.startswith(folder.name) and (folder.parent / named).is_file()
    if not known or pathlib.Path(named).exists():
        return word
    return f"{start}{flag}{own}"


def config_values(config: Any) -> dict[str, Any]:
    """Turn the value of a config flag, after parsing, into a plain dict.

    Raises:
      UserError: The config file is missing or failed.
    """
    try:
        fields = config.to_dict()
    except Exception as error:  # The file's own error, kept until the first use.
        path = config_flags.get_config_filename(flags.FLAGS["config"])
        if not pathlib.Path(path).is_file():
            raise UserError(
                f"--config: there is no file {path!r}: --list shows those that are here"
            ) from None
        raise UserError(f"--config: {_explain(error)}") from error
    for word in _words(fields):
        _log.debug("config.%s", word)
    return fields


def _parse(about: str, argv: list[str]) -> list[str]:
    wanted = [word for word in argv if word not in _HELP]
    try:
        rest = flags.FLAGS(wanted)
        if len(wanted) < len(argv):
            _show(_help_text(about))
            sys.exit(0)
    except Exception as error:  # A config file may raise anything.
        if "--debug" in argv:
            raise
        _fail(_explain(error))
    if rest[1:]:
        _fail(f"unexpected argument {rest[1]!r}: write flags as --name=value")
    given = flags.FLAGS
    if given.quiet and given.verbose:
        _fail("--quiet and --verbose: choose one of them")
    # By default none of what absl logs: orbax reports every file, and errors twice.
    loud = given.verbose or given.debug
    absl_logging.set_verbosity(absl_logging.INFO if loud else absl_logging.FATAL)
    return rest


def _help_text(about: str) -> str:
    """Describe a program by its docstring, its flags and the fields of its config."""
    known: Any = flags.FLAGS
    pairs = [
        (f"--{name}={takes}" if takes else f"--{name}", known[name].help)
        for name, takes in _SHOWN.items()
    ]
    path = pathlib.Path(config_flags.get_config_filename(known["config"]))
    title = f"fields of {path.parent.name}/{path.name}, set by --config.FIELD=VALUE\n"
    title += "(the page above says what each of them does):"
    fields = known["config"].value.to_dict()
    groups = {f"{k}.": group for k, group in fields.items() if isinstance(group, dict)}
    plain = {k: value for k, value in fields.items() if not isinstance(value, dict)}
    shown = [(k, " ".join(_words(v))) for k, v in {"": plain, **groups}.items() if v]
    lines = [about.strip(), "", "flags:", two_columns(pairs), "", title]
    return "\n".join([*lines, two_columns(shown)])


def _words(fields: Mapping[str, Any]) -> list[str]:
    """Give fields and values as one would type them.

    >>> _words({"seed": 0, "rdc": {"k": 10}, "title": "Two words", "dir": ""})
    ['seed=0', 'rdc.k=10', "title='Two words'", "dir=''"]
    """
    return [f"{name}={shlex.quote(str(x))}" for name, x in flat(fields).items()]


def _explain(error: Exception) -> str:
    """Make one line of an error of the flags libraries.

    >>> _explain(ValueError("invalid literal for int() with base 10: 'abc'"))
    "give a whole number, not 'abc'"
    """
    if error.args and isinstance(error.args[0], KeyError):  # An unknown field.
        field, *hint = str(error.args[0].args[0]).splitlines()
        return " ".join([f"the config has no field {field}.", *hint])
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "Traceback" in str(error):  # A config file that raised: its own message.
        return lines[-1].partition(": ")[2] or lines[-1]
    text = " ".join(lines)
    for said, meant in _PLAINLY.items():
        text = re.sub(said, meant, text)
    return text


def _show(text: str) -> None:
    # Here and not for whole runs: sockets of a cluster break too, and are reported.
    ready_stdout()
    print(text)


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)
