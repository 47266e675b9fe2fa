"""An evaluation, from a config to tables."""

import collections
import functools
import logging
import pathlib
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from jaxtyping import Float32

from rdc_jax.evaluation import demo, exhibits, features, results
from rdc_jax.evaluation.engine import Engine, Pass
from rdc_jax.evaluation.exhibit_file import path_of, read_text
from rdc_jax.evaluation.finetune_pass import FinetunePass
from rdc_jax.evaluation.groups import Group, make_groups
from rdc_jax.evaluation.identity import identify
from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.evaluation.options import Options
from rdc_jax.evaluation.programs import Programs
from rdc_jax.evaluation.progress import Progress
from rdc_jax.evaluation.targets import Target, decode_targets, open_targets
from rdc_jax.models.model import Model, load_backbone
from rdc_jax.runtime.processes import broadcast_from_first, is_first
from rdc_jax.runtime.threads import one_lapack_thread
from rdc_jax.runtime.workdir import claim

_log = logging.getLogger(__name__)

LEDGER = "ledger.jsonl"


def evaluate(
    config: Mapping[str, Any], workdir: str | pathlib.Path
) -> dict[str, Any] | None:
    """Evaluate methods on data sets, or go on with a run that was interrupted.

    The work directory gets ``ledger.jsonl``, ``results.json``, ``table.md``,
    ``exhibits`` and ``cache``. A finished run is only summed up again.

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
        stack.enter_context(one_lapack_thread())
        if is_first():
            stack.enter_context(claim(workdir))
        cache_dir = pathlib.Path(options.cache_dir or workdir / "cache")
        backbone, groups, targets = _open(options, workdir, cache_dir)
        ledger = None
        if is_first():
            columns = {group.name: group.columns for group in groups}
            header = identify(config, options, backbone, targets)
            path = workdir / LEDGER
            ledger = stack.enter_context(Ledger(path, {**header, "columns": columns}))
        _Run(options, backbone, groups, cache_dir, ledger).all(targets)
        if ledger is None:
            return None
        datasets = [target.source.name for target in targets]
        return results.write(workdir, ledger, options, datasets)


def _open(
    options: Options, workdir: pathlib.Path, cache_dir: pathlib.Path
) -> tuple[Model, list[Group], list[Target]]:
    """Look for mistakes, decode all images, train where that is asked for.

    In the order of the time that it takes: what is wrong is told as soon as possible.
    """
    if options.checkpoint:
        backbone = load_backbone(options.checkpoint)
        opened, groups = open_targets(options), make_groups(options, backbone)
        targets = decode_targets(opened, options, cache_dir)
    else:
        targets = decode_targets(open_targets(options), options, cache_dir)
        backbone = load_backbone(demo.train_backbone(options.pretrain, workdir))
        groups = make_groups(options, backbone)
    trained = backbone.metadata.get("image_size", options.image_size)
    if trained != options.image_size:
        _log.warning(
            "the backbone was trained on %d px, config.image_size is %d",
            *(trained, options.image_size),
        )
    return backbone, groups, targets


class _Run:
    """The work of a run, group by group and data set by data set.

    Args:
      options: Of the run.
      backbone: The network.
      groups: Its methods.
      cache_dir: For pixels and features.
      ledger: In the first process; None in others.
    """

    def __init__(
        self,
        options: Options,
        backbone: Model,
        groups: list[Group],
        cache_dir: pathlib.Path,
        ledger: Ledger | None,
    ) -> None:
        self.options, self.backbone = options, backbone
        self.groups, self.cache_dir, self.ledger = groups, cache_dir, ledger
        self.engine = Engine(chunk=options.chunk)

    def all(self, targets: list[Target]) -> None:
        """Compute what is not on record."""
        missing = {
            (group.name, target.source.name): self._missing(group, target)
            for group in self.groups
            for target in targets
        }
        total = len(missing) * len(self.options.shots) * self.options.episodes
        left = collections.Counter[str]()
        for (group_name, _), stages in missing.items():
            left[group_name] += sum(map(len, stages.values()))
        if left.total() < total:
            done = total - left.total()
            _log.info("%d of %d episodes are on record", done, total)
        with Progress(total, left, shown=self.ledger is not None) as progress:
            for group in self.groups:
                for target in targets:
                    if stages := missing[group.name, target.source.name]:
                        self._target(group, target, stages, progress)

    def _missing(self, group: Group, target: Target) -> dict[Stage, range]:
        """The episodes of each stage that are not on record."""
        missing = {}
        for shot in self.options.shots:
            stage = Stage(target.source.name, shot, group.name)
            done = broadcast_from_first(
                0 if self.ledger is None else self.ledger.done(stage)
            )
            if done < self.options.episodes:
                missing[stage] = range(done, self.options.episodes)
        return missing

    def _target(
        self,
        group: Group,
        target: Target,
        stages: dict[Stage, range],
        progress: Progress,
    ) -> None:
        """One data set: features where they are needed, exhibits, episodes."""
        pixels = target.pixels

        @functools.cache
        def embed() -> Float32[np.ndarray, "n d"]:
            return features.embed(pixels, self.backbone, self.options, self.cache_dir)

        if self.ledger is not None:  # First: a kill later does not leave them out.
            home, header = self.ledger.path.parent, self.ledger.header
            exhibits.write(home, header, pixels, embed, target.samplers, self.options)
        for stage, episodes in stages.items():
            work = group.open(stage.shot, target, embed)
            self._stage(stage, group, work, episodes, progress)

    def _stage(
        self,
        stage: Stage,
        group: Group,
        work: Pass,
        episodes: range,
        progress: Progress,
    ) -> None:
        """The episodes of one shot, block by block into the ledger."""
        queries = self.options.spec(stage.shot).query_size
        shown = group.columns.index(group.shown)
        clock = _Clock(self.engine.programs)
        for block in self.engine.run(work, episodes):
            if self.ledger is None:
                continue
            self._show(self.ledger, stage, group, work)
            self.ledger.append(stage, block.counts)
            right_e = self.ledger.counts(stage)[:, shown]
            progress.add(
                stage,
                len(block.counts),
                clock.lap(),
                100 * right_e / queries,
                group.shown,
            )

    def _show(self, ledger: Ledger, stage: Stage, group: Group, work: Pass) -> None:
        """Add a fine-tuned task to its exhibit, before episodes are on record.

        A kill in between leaves the episodes to be computed again, and then this too.
        """
        if not isinstance(work, FinetunePass):
            return
        path = path_of(ledger.path.parent, stage.dataset, stage.shot)
        if path.exists() and read_text(path, "after_title") != group.title:
            feat_nd = work.first_features(self.engine.programs)
            exhibits.add_after(path, feat_nd, self.options.rdc, group.title)


class _Clock:
    """Time between laps, without that of compilation."""

    def __init__(self, programs: Programs) -> None:
        self._programs, self._mark = programs, 0.0
        self.lap()

    def lap(self) -> float:
        """Give the seconds since the last call."""
        now = time.monotonic() - self._programs.seconds
        seconds, self._mark = now - self._mark, now
        return seconds
