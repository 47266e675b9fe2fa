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

import pathlib

from absl import flags

from rdc_jax.cli import flags as rdc_flags
from rdc_jax.runtime.errors import UserError

_CONFIGS = pathlib.Path(__file__).parent / "configs"
_CONFIG = rdc_flags.define_config(
    str(_CONFIGS / "pretrain.py:paper"),
    "Config file, with :paper, :reduced, :test or a system as in :protonet,test; "
    "configs/pretrain.py:paper if not given.",
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Directory the run lives in.")
_PROCESSES = rdc_flags.define_processes()


def main() -> None:
    """Read the flags and train."""
    config = rdc_flags.config_values(_CONFIG.value)
    if not _WORKDIR.value:
        raise UserError("--workdir is missing: give a directory for the run")
    # After the flags, so that a mistake in them is told at once.
    from rdc_jax.pretrain.run import pretrain
    from rdc_jax.runtime import processes

    processes.join_processes(*_PROCESSES())
    pretrain(config, _WORKDIR.value)


def listing() -> str:
    """List what can be asked for."""
    from rdc_jax.cli import listing
    from rdc_jax.pretrain.objectives import OBJECTIVES
    from rdc_jax.runtime.plugins import load_plugin

    config = rdc_flags.config_values(_CONFIG.value)
    for path in filter(None, config["plugins"].split(",")):
        load_plugin(path)
    return listing.for_pretraining(_CONFIGS, OBJECTIVES, config["data_dir"])


if __name__ == "__main__":
    rdc_flags.run(main, listing)
