r"""Evaluate few-shot methods over thousands of tasks of many data sets.

  python run_eval.py                 a demo of minutes: no data, no checkpoint
  python run_eval.py --list          methods, data sets, configs, checkpoints
  python run_eval.py --config=configs/eval.py:paper --workdir=DIR \
      --config.data_dir=DATA --config.checkpoint=PATH      the paper's protocol
  python run_eval.py --config=configs/paper/table1.py ...      one table of it

The same command again goes on where the run stopped. The table is printed at
the end; results.json, table.md and report.html are in the work directory. See
docs/evaluation.md.

exit code: 0 finished; 2 a mistake or an obstacle, in one line on stderr; 130
after Ctrl-C and 143 after SIGTERM, not finished; 1 a fault of the program
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

from absl import flags

from rdc_jax.cli import flags as rdc_flags
from rdc_jax.runtime.errors import UserError

_DEMO = "workdir/demo"
_CONFIGS = pathlib.Path(__file__).parents[1] / "configs"


def run() -> None:
    """Define the flags, parse them, and run the program."""
    config = rdc_flags.define_config(
        str(_CONFIGS / "eval.py:demo"),
        "Config file, with :demo, :paper, :reduced or :test; configs/eval.py:demo if "
        "not given.",
    )
    flags.DEFINE_string(
        "workdir",
        None,
        f"Directory the run lives in; {_DEMO} if there is no --config.",
    )
    processes = rdc_flags.define_processes()
    rdc_flags.run(
        functools.partial(main, config, processes),
        functools.partial(listing, config),
        about=__doc__,
    )


def main(config: flags.FlagHolder, processes: Callable[[], tuple[Any, ...]]) -> None:
    """Read the flags, evaluate, print the table, write the report."""
    values = rdc_flags.config_values(config.value)
    given = flags.FLAGS["config"].present
    workdir = flags.FLAGS.workdir or ("" if given else _DEMO)
    if not workdir:
        raise UserError("--workdir is missing: give a directory for the run")
    # After the flags, so that a mistake in them is told at once.
    from rdc_jax.evaluation.results import TABLE
    from rdc_jax.evaluation.run import evaluate
    from rdc_jax.reporting import report
    from rdc_jax.runtime.processes import join_processes

    join_processes(*processes())
    if evaluate(values, workdir) is not None:
        print((pathlib.Path(workdir) / TABLE).read_text(encoding="utf-8"))
        report.after_run(workdir)


def listing(config: flags.FlagHolder) -> str:
    """List what can be asked for, methods of the user's own included."""
    from rdc_jax import methods
    from rdc_jax.cli.listing import for_evaluation

    values = rdc_flags.config_values(config.value)
    for path in filter(None, values["plugins"].split(",")):
        methods.load_plugin(path)
    return for_evaluation(_CONFIGS, values["data_dir"])
