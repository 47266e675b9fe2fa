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

import pathlib

from absl import flags

from rdc_jax.cli import flags as rdc_flags
from rdc_jax.runtime.errors import UserError

_DEMO = "workdir/demo"
_CONFIGS = pathlib.Path(__file__).parent / "configs"
_CONFIG = rdc_flags.define_config(
    str(_CONFIGS / "eval.py:demo"),
    "Config file, with :demo, :paper, :reduced or :test; configs/eval.py:demo if "
    "not given.",
)
_WORKDIR = flags.DEFINE_string(
    "workdir", None, f"Directory the run lives in; {_DEMO} if there is no --config."
)
_PROCESSES = rdc_flags.define_processes()


def main() -> None:
    """Read the flags, evaluate, print the table, write the report."""
    config = rdc_flags.config_values(_CONFIG.value)
    workdir = _WORKDIR.value or ("" if flags.FLAGS["config"].present else _DEMO)
    if not workdir:
        raise UserError("--workdir is missing: give a directory for the run")
    # After the flags, so that a mistake in them is told at once.
    from rdc_jax.evaluation.results import TABLE
    from rdc_jax.evaluation.run import evaluate
    from rdc_jax.reporting import report
    from rdc_jax.runtime import processes

    processes.join_processes(*_PROCESSES())
    if evaluate(config, workdir) is not None:
        print((pathlib.Path(workdir) / TABLE).read_text(encoding="utf-8"))
        report.after_run(workdir)


def listing() -> str:
    """List what can be asked for, methods of the user's own included."""
    from rdc_jax import methods
    from rdc_jax.cli import listing

    config = rdc_flags.config_values(_CONFIG.value)
    for path in filter(None, config["plugins"].split(",")):
        methods.load_plugin(path)
    return listing.for_evaluation(_CONFIGS, config["data_dir"])


if __name__ == "__main__":
    rdc_flags.run(main, listing)
