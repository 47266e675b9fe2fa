"""Pre-training of a backbone on the base classes, from a config to checkpoints."""

import logging
import pathlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import jax

from rdc_jax.models.checkpoints import Checkpoints
from rdc_jax.pretrain.input_pipeline import open_images
from rdc_jax.pretrain.logs import MetricsLog
from rdc_jax.pretrain.loop import Trainer
from rdc_jax.pretrain.objectives import get_objective
from rdc_jax.pretrain.options import Options
from rdc_jax.pretrain.setup import Run
from rdc_jax.pretrain.signals import stop_on_signals
from rdc_jax.pretrain.step import join, split
from rdc_jax.runtime import checksums, processes
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.plugins import load_plugin
from rdc_jax.runtime.workdir import claim, record_run

_log = logging.getLogger(__name__)


def pretrain(config: Mapping[str, Any], workdir: str | pathlib.Path) -> None:
    """Train a backbone, or go on with a run that was interrupted.

    The work directory gets ``checkpoints``, ``metrics.jsonl``, ``tensorboard`` and
    ``run.json``. A finished run is left as it is.

    Args:
      config: A plain dict of the fields of ``configs/pretrain.py``.
      workdir: Where the run lives.

    Raises:
      UserError: Something is wrong with the config, the data or the directory.
      Interrupted: A signal came; the run has been saved.
    """
    options = Options.from_config(config)
    record: dict[str, Any] = {"config": {**config}}
    plugins = [load_plugin(path) for path in options.plugins]
    if plugins:
        record["plugins"] = {path.name: checksums.of_file(path) for path in plugins}
    get_objective(options.method)  # Fails on a wrong name, before long work.
    workdir = pathlib.Path(workdir).absolute()
    try:
        with ExitStack() as stack:
            _pretrain(options, record, workdir, stack)
    except OSError as error:  # A full disk, a directory that went away, ...
        raise UserError(
            f"{error.filename or workdir}: {error.strerror or error}; "
            "fix it, then run the same command"
        ) from error


def _pretrain(
    options: Options, record: dict[str, Any], workdir: pathlib.Path, stack: ExitStack
) -> None:
    """Train; the stack closes what is opened on the way."""
    if processes.is_first():
        stack.enter_context(claim(workdir))
    images = open_images(options, workdir)
    if processes.is_first():
        record_run(workdir, {**record, "data": images.fingerprints})
    run = Run(options, images, record["config"])
    checkpoints = stack.enter_context(Checkpoints(workdir / "checkpoints"))
    # The newest checkpoint is read onto the devices of this run.
    start = jax.jit(run.initial_state, out_shardings=run.layout.replicated)
    restored = checkpoints.restore_latest(*split(jax.eval_shape(start)))
    state = join(restored.variables, restored.training) if restored else start()
    step, total = int(state.step), run.total_steps
    if step == total:
        _log.info("%s is finished: %s", workdir, _summary(checkpoints))
        return
    if step:
        _log.info("going on from step %d of %d", step, total)
    checkpoints.check_room(*split(state))
    signals = stack.enter_context(stop_on_signals())
    log = None
    if processes.is_first():
        log = stack.enter_context(MetricsLog(workdir, step=step))
    Trainer(run, checkpoints, log, signals).train(state)
    _log.info("finished: %s", _summary(checkpoints))


def _summary(checkpoints: Checkpoints) -> str:
    best = checkpoints.best_step
    return f"{checkpoints.steps[-1]} steps; the best checkpoint is step {best}"
