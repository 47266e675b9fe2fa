"""Evaluate few-shot methods: ``python run_eval.py`` for a demo without any data.

See docs/evaluation.md. The same command again goes on where the run stopped.
"""

import pathlib

from absl import flags

from rdc_jax import flags as rdc_flags
from rdc_jax.errors import UserError

_DEMO = "workdir/demo"
_CONFIG = rdc_flags.define_config(
    str(pathlib.Path(__file__).parent / "configs/eval.py:demo"),
    "Config file, with :demo, :paper, :reduced or :test.",
)
_WORKDIR = flags.DEFINE_string(
    "workdir", None, f"Directory the run lives in; {_DEMO} if there is no --config."
)
_COORDINATOR = flags.DEFINE_string(
    "coordinator", None, "Several processes: host:port of process 0, or auto."
)
_NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "How many processes.")
_PROCESS_ID = flags.DEFINE_integer("process_id", None, "Number of this process.")


def main() -> None:
    """Read the flags, evaluate, print the table, write the report."""
    config = rdc_flags.config_values(_CONFIG.value)
    workdir = _WORKDIR.value or ("" if flags.FLAGS["config"].present else _DEMO)
    if not workdir:
        raise UserError("--workdir is missing: give a directory for the run")
    # After the flags, so that a mistake in them is told at once.
    from rdc_jax.evaluation.evaluate import evaluate
    from rdc_jax.evaluation.results import TABLE
    from rdc_jax.reporting import report
    from rdc_jax.training import parallel

    parallel.join_processes(_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value)
    if evaluate(config, workdir) is not None:
        print((pathlib.Path(workdir) / TABLE).read_text(encoding="utf-8"))
        report.after_run(workdir)


if __name__ == "__main__":
    rdc_flags.run(main)
