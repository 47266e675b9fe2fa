"""Pre-train a backbone: ``python run_pretrain.py --workdir=DIR --config.data_dir=DIR``.

See docs/pretraining.md. The same command again goes on where the run stopped.
"""

import pathlib

from absl import flags

from rdc_jax import flags as rdc_flags
from rdc_jax.errors import UserError

_CONFIG = rdc_flags.define_config(
    str(pathlib.Path(__file__).parent / "configs/pretrain.py:paper"),
    "Config file, with :paper, :reduced, :protonet or :test.",
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Directory the run lives in.")
_COORDINATOR = flags.DEFINE_string(
    "coordinator", None, "Several processes: host:port of process 0, or auto."
)
_NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "How many processes.")
_PROCESS_ID = flags.DEFINE_integer("process_id", None, "Number of this process.")


def main() -> None:
    """Read the flags and train."""
    config = rdc_flags.config_values(_CONFIG.value)
    if not _WORKDIR.value:
        raise UserError("--workdir is missing: give a directory for the run")
    # After the flags, so that a mistake in them is told at once.
    from rdc_jax.training import parallel
    from rdc_jax.training.pretrain import pretrain

    parallel.join_processes(_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value)
    pretrain(config, _WORKDIR.value)


if __name__ == "__main__":
    rdc_flags.run(main)
