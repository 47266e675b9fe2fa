"""An evaluation, from a config to tables."""

import logging
import pathlib
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32

from rdc_jax.errors import UserError
from rdc_jax.evaluation import demo, features, results
from rdc_jax.evaluation.engine import Engine
from rdc_jax.evaluation.identity import identify
from rdc_jax.evaluation.judge import Judge
from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.evaluation.options import Options
from rdc_jax.evaluation.processes import agreed
from rdc_jax.evaluation.progress import Progress
from rdc_jax.evaluation.targets import Target, open_targets, readable
from rdc_jax.models.backbone import Backbone, load_backbone
from rdc_jax.training.parallel import is_first
from rdc_jax.training.workdir import claim

_log = logging.getLogger(__name__)

LEDGER = "ledger.jsonl"
FEATURES = "features"  # The group of all methods that need features.


def evaluate(
    config: Mapping[str, Any], workdir: str | pathlib.Path
) -> dict[str, Any] | None:
    """Evaluate methods on data sets, or go on with a run that was interrupted.

    The work directory gets ``ledger.jsonl``, ``results.json``, ``table.md`` and
    ``cache``. A finished run is only summed up again.

    Args:
      config: A plain dict of the fields of ``configs/eval.py``.
      workdir: Where the run lives.

    Returns:
      What ``results.json`` holds; None in all processes but the first.

    Raises:
      UserError: Something is wrong with the config, the data or the directory.
    """
    options = Options.from_config(config)
    workdir = pathlib.Path(workdir).absolute()
    with ExitStack() as stack:
        if is_first():
            stack.enter_context(claim(workdir))
        backbone, targets = _open(options, workdir)
        judges = _judges(options, backbone)
        ledger = None
        if is_first():
            columns = {FEATURES: next(iter(judges.values())).columns}
            header = identify(config, options, backbone, targets)
            path = workdir / LEDGER
            ledger = stack.enter_context(Ledger(path, {**header, "columns": columns}))
        cache_dir = pathlib.Path(options.cache_dir or workdir / "cache")
        _Run(options, backbone, judges, cache_dir, ledger).all(targets)
        if ledger is None:
            return None
        datasets = [target.source.name for target in targets]
        return results.write(workdir, ledger, options, datasets)


def _open(options: Options, workdir: pathlib.Path) -> tuple[Backbone, list[Target]]:
    """Open all that may be missing; only then train, where that is asked for."""
    if options.checkpoint:
        backbone = load_backbone(options.checkpoint)
        targets = open_targets(options)
    else:
        targets = open_targets(options)
        backbone = load_backbone(demo.train_backbone(options.pretrain, workdir))
    trained = backbone.metadata.get("image_size", options.image_size)
    if trained != options.image_size:
        _log.warning(
            "the backbone was trained on %d px, config.image_size is %d",
            *(trained, options.image_size),
        )
    return backbone, targets


def _judges(options: Options, backbone: Backbone) -> dict[int, Judge]:
    """One judge for each shot, tried on shapes before the long work."""
    for method in options.methods:
        if method.needs != "features":
            raise UserError(f"method {method.name} needs {method.needs}, not features")
    image = jax.ShapeDtypeStruct((1, options.image_size, options.image_size, 3), "f4")
    d = jax.eval_shape(backbone, image).shape[1]
    judges = {}
    for shot in options.shots:
        spec = options.spec(shot)
        judge = Judge(options.methods, options.settings, spec.support_size)
        n = spec.support_size + spec.query_size
        jax.eval_shape(
            judge,
            jax.ShapeDtypeStruct((n, d), np.float32),
            jax.ShapeDtypeStruct((n,), np.int32),
        )
        judges[shot] = judge
    return judges


class _Run:
    """The work of a run, data set by data set.

    Args:
      options: Of the run.
      backbone: The network.
      judges: By shot.
      cache_dir: For pixels and features.
      ledger: In the first process; None in others.
    """

    def __init__(
        self,
        options: Options,
        backbone: Backbone,
        judges: dict[int, Judge],
        cache_dir: pathlib.Path,
        ledger: Ledger | None,
    ) -> None:
        self.options, self.backbone = options, backbone
        self.judges, self.cache_dir, self.ledger = judges, cache_dir, ledger
        self.engine = Engine(chunk=options.chunk)

    def all(self, targets: list[Target]) -> None:
        """Compute what is not on record."""
        missing = [self._missing(target) for target in targets]
        total = len(targets) * len(self.options.shots) * self.options.episodes
        left = sum(len(numbers) for each in missing for numbers in each.values())
        if left < total:
            _log.info("%d of %d episodes are on record", total - left, total)
        shown = self.ledger is not None
        with Progress(total, total - left, shown=shown) as progress:
            for target, stages in zip(targets, missing, strict=True):
                if stages:
                    self._target(target, stages, progress)

    def _missing(self, target: Target) -> dict[Stage, range]:
        """The episodes of each stage that are not on record."""
        missing = {}
        for shot in self.options.shots:
            stage = Stage(target.source.name, shot, FEATURES)
            done = agreed(0 if self.ledger is None else self.ledger.done(stage))
            if done < self.options.episodes:
                missing[stage] = range(done, self.options.episodes)
        return missing

    def _target(
        self, target: Target, stages: dict[Stage, range], progress: Progress
    ) -> None:
        """One data set: its features, then its episodes."""
        pixels = features.decode(target.source, self.options, self.cache_dir)
        target = readable(target, pixels, self.options)
        began = time.monotonic()
        feat_nd = features.embed(pixels, self.backbone, self.options, self.cache_dir)
        _log.info(
            "%s: features of %d images in %.1f s",
            *(pixels.name, len(feat_nd), time.monotonic() - began),
        )
        for stage, episodes in stages.items():
            self._stage(stage, episodes, feat_nd, target, progress)

    def _stage(
        self,
        stage: Stage,
        episodes: range,
        feat_nd: Float32[np.ndarray, "n d"],
        target: Target,
        progress: Progress,
    ) -> None:
        """The episodes of one shot, block by block into the ledger."""
        judge, sampler = self.judges[stage.shot], target.samplers[stage.shot]
        shown = len(judge.methods) - 1
        clock = _Clock(self.engine)
        for block in self.engine.run(judge, feat_nd, sampler, episodes):
            if self.ledger is None:
                continue
            self.ledger.append(stage, block.counts)
            right_e = self.ledger.counts(stage)[:, shown]
            progress.advance(
                stage,
                len(block.counts),
                clock.lap(),
                100 * right_e / sampler.spec.query_size,
                judge.columns[shown],
            )


class _Clock:
    """Time between laps, without that of compilation."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._mark = engine, 0.0
        self.lap()

    def lap(self) -> float:
        """Give the seconds since the last call."""
        now = time.monotonic() - self._engine.seconds_compiling
        seconds, self._mark = now - self._mark, now
        return seconds
