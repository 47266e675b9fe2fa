r"""Pre-train a backbone on labelled images.

  python run_pretrain.py --workdir=DIR --config.data_dir=DATA   the paper's
  python run_pretrain.py --list               objectives, data sets, configs
  python run_pretrain.py --config=configs/pretrain.py:reduced --workdir=DIR \
      --config.data_dir=DATA                  hours on a CPU, at 84 px
  python run_pretrain.py --config=configs/pretrain.py:test --workdir=DIR
                                              seconds, without any data

The same command again goes on where the run stopped. Wherever a checkpoint is
asked for, the work directory stands for its best step. See docs/pretraining.md.

exit code: 0 finished; 2 a mistake or an obstacle, in one line on stderr; 130
after Ctrl-C and 143 after SIGTERM, saved but not finished; 1 a fault of the
program
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

from absl import flags

from rdc_jax.cli import flags as rdc_flags
from rdc_jax.runtime.errors import UserError

_CONFIGS = pathlib.Path(__file__).parents[1] / "configs"


def run() -> None:
    """Define the flags, parse them, and run the program."""
    config = rdc_flags.define_config(
        str(_CONFIGS / "pretrain.py:paper"),
        "Config file, with :paper, :reduced, :test or a system as in :protonet,test; "
        "configs/pretrain.py:paper if not given.",
    )
    flags.DEFINE_string("workdir", None, "Directory the run lives in.")
    processes = rdc_flags.define_processes()
    rdc_flags.run(
        functools.partial(main, config, processes),
        functools.partial(listing, config),
        about=__doc__,
    )


def main(config: flags.FlagHolder, processes: Callable[[], tuple[Any, ...]]) -> None:
    """Read the flags and train."""
    values = rdc_flags.config_values(config.value)
    if not flags.FLAGS.workdir:
        raise UserError("--workdir is missing: give a directory for the run")
    # After the flags, so that a mistake in them is told at once.
    from rdc_jax.pretrain.run import pretrain
    from rdc_jax.runtime.processes import join_processes

    join_processes(*processes())
    pretrain(values, flags.FLAGS.workdir)


def listing(config: flags.FlagHolder) -> str:
    """List what can be asked for."""
    from rdc_jax.cli.listing import for_pretraining
    from rdc_jax.pretrain.objectives import OBJECTIVES
    from rdc_jax.runtime.plugins import load_plugin

    values = rdc_flags.config_values(config.value)
    for path in filter(None, values["plugins"].split(",")):
        load_plugin(path)
    return for_pretraining(_CONFIGS, OBJECTIVES, values["data_dir"])
