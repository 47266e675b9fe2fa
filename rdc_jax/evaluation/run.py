"""An evaluation, from a config to tables."""

import collections
import dataclasses
import logging
import pathlib
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int

from rdc_jax.data.squares import Square
from rdc_jax.evaluation import choice, diagnostics, example_tasks, results
from rdc_jax.evaluation.adapting import AdaptationScorer
from rdc_jax.evaluation.arrange import Scorer, arrange
from rdc_jax.evaluation.confusion import Answered
from rdc_jax.evaluation.datasets import DataSet, Source, open_datasets
from rdc_jax.evaluation.engine import Engine
from rdc_jax.evaluation.identity import identify
from rdc_jax.evaluation.ledger import Stage
from rdc_jax.evaluation.options import Options
from rdc_jax.evaluation.progress import Progress
from rdc_jax.evaluation.record import Record
from rdc_jax.evaluation.scoring import FeatureScorer
from rdc_jax.methods.adapt import Adaptation
from rdc_jax.methods.views import compiled, feature_fn
from rdc_jax.models.load import load_model
from rdc_jax.models.model import Model
from rdc_jax.models.preprocessing import FIELD
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.processes import broadcast_from_first, is_first
from rdc_jax.runtime.threads import one_lapack_thread
from rdc_jax.runtime.workdir import claim

_log = logging.getLogger(__name__)


class Missing(NamedTuple):
    """What a stage lacks: tasks that are not on record."""

    stage: Stage
    scorer: Scorer
    dataset: DataSet
    tasks: range


def evaluate(
    config: Mapping[str, Any], workdir: str | pathlib.Path
) -> dict[str, Any] | None:
    """Evaluate methods on data sets, or go on with a run that was interrupted.

    The work directory gets ``ledger.jsonl``, ``answers``, ``results.json``,
    ``tasks.csv``, ``table.md``, ``examples`` and ``cache``; if they are asked for,
    ``predictions.parquet`` and ``choice``. A finished run is only summed up again; with
    methods added to its config, only these are computed.

    Args:
      config: A plain dict of the fields of ``configs/eval.py``.
      workdir: Where the run lives.

    Returns:
      What ``results.json`` holds; None in all processes but the first.

    Raises:
      UserError: Something is wrong with the config, the data or the directory.
    """
    workdir = pathlib.Path(workdir).absolute()
    if not config["choose_on"]:
        return _evaluate(config, workdir)
    everything = Options.from_config(choice.expanded(config))
    # Mistakes are told before the choice, which may take long.
    open_datasets(everything, _square(everything, {}), _cache_dir(everything, workdir))
    chosen = choice.choose(config, workdir, _evaluate)
    return _evaluate({**config, "methods": chosen.methods}, workdir, chosen.record)


def _evaluate(
    config: Mapping[str, Any],
    workdir: pathlib.Path,
    chosen: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    options = dataclasses.replace(Options.from_config(config), choice=chosen)
    with ExitStack() as stack:
        stack.enter_context(one_lapack_thread())
        if is_first():
            stack.enter_context(claim(workdir))
        # In the order of the time that it takes: mistakes are told as soon as possible.
        cache_dir = _cache_dir(options, workdir)
        models = _load_models(options) if options.checkpoint else {}
        square = _square(options, models)
        datasets = open_datasets(options, square, cache_dir)
        source = _open_source(options, square, cache_dir)
        if not models:
            _decode(datasets, source)
            trained = str(_pretrained(options, workdir))
            models = _load_models(dataclasses.replace(options, checkpoint=trained))
        for scorer in arrange(options, models, source, {}):
            for shot in options.shots:
                scorer.check(shot)
        _decode(datasets, source)
        record, groups = None, {}
        if is_first():
            header = identify(config, options, models[""], datasets)
            record = stack.enter_context(Record(workdir, header, options))
            recorded = record.ledger.groups.items()
            groups = {name: found["columns"] for name, found in recorded}
        scorers = arrange(options, models, source, broadcast_from_first(groups))
        run = _Run(options, models[""], scorers, record)
        for missing in run.missing(datasets):
            run.compute(missing)
        if record is None:
            return None
        return _write(workdir, record, options, datasets)


def _write(
    workdir: pathlib.Path, record: Record, options: Options, datasets: list[DataSet]
) -> dict[str, Any]:
    by_name = {dataset.name: dataset for dataset in datasets}

    def find(dataset: str, shot: Shot) -> Answered:
        return by_name[dataset].answered(shot, record.read(dataset, shot))

    if options.predictions:
        # Only here: pyarrow takes its time to import.
        from rdc_jax.evaluation import predictions

        parts = (
            (name, shot, find(name, shot), record.read(name, shot, "distances"))
            for shot in options.shots
            for name in by_name
        )
        predictions.write(workdir / predictions.PREDICTIONS, options, parts)
    return results.write(workdir, record.ledger, options, [*by_name], find)


def _cache_dir(options: Options, workdir: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(options.cache_dir or workdir / "cache")


def _open_source(
    options: Options, square: Square, cache_dir: pathlib.Path
) -> Source | None:
    asking = (entry.method for entry in options.methods)
    if any(isinstance(m, Adaptation) and m.source_images for m in asking):
        return Source(options, square, cache_dir)
    return None


def _decode(datasets: list[DataSet], source: Source | None) -> None:
    """Decode all images, so that no broken one ends a run half-way."""
    for dataset in datasets:
        _ = dataset.pixels
    if source is not None:
        _ = source.pixels


def _load_models(options: Options) -> dict[str, Model]:
    """Models by name, that of ``config.checkpoint`` by the empty one."""
    names = {entry.checkpoint for entry in options.methods} - {""}
    paths = {"": options.checkpoint, **{n: options.checkpoints[n] for n in names}}
    return {name: _load_model(name, paths[name], options) for name in paths}


def _load_model(name: str, path: str, options: Options) -> Model:
    model, size = load_model(path), options.image_size
    preprocessing = model.preprocessing.replaced(options.preprocessing, size)
    model = model.replace(
        spec=dataclasses.replace(model.spec, preprocessing=preprocessing)
    )
    called = f"model {name}" if name else "the model"
    trained = model.metadata.get("image_size") or size
    if trained != size:
        _log.warning(
            "%s was trained on %d px, config.image_size is %d", called, trained, size
        )
    if preprocessing.noted.keys() - {"size"}:
        _log.info("images of %s: %s", called, preprocessing.at(size))
    return model


def _square(options: Options, models: dict[str, Model]) -> Square:
    """How images are decoded: as all models of the run want it.

    Raises:
      UserError: They want different pixels.
    """
    size = options.image_size
    ours = FIELD.replaced(options.preprocessing, size)
    wanted = {n: m.preprocessing.square_at(size) for n, m in models.items()}
    square = wanted.get("", ours.square_at(size))
    for name, other in wanted.items():
        if other != square:
            raise UserError(
                f"config.checkpoints.{name} wants its images another way than "
                "config.checkpoint: set --config.preprocessing.resize and "
                ".interpolation for both, or evaluate them in two work directories"
            )
    return Square(*square)


def _pretrained(options: Options, workdir: pathlib.Path) -> pathlib.Path:
    """Train a backbone inside the work directory, or find it trained already."""
    # Only here: optimisers, data loaders and logs take seconds to import.
    from rdc_jax.pretrain.run import pretrain

    path = workdir / "backbone"
    source = options.pretrain["source"]
    _log.info("no config.checkpoint: training a backbone on %s", source)
    pretrain(options.pretrain, path)
    return path


class _Run:
    """The work of a run, scorer by scorer and data set by data set.

    Only the first process has a ``record``.
    """

    def __init__(
        self,
        options: Options,
        model: Model,
        scorers: list[Scorer],
        record: Record | None,
    ) -> None:
        self.options, self.model = options, model
        self.scorers, self.record = scorers, record
        self.engine = Engine(chunk=options.chunk)
        if record is not None:
            for scorer in scorers:
                record.ledger.begin(scorer.name, scorer.record)

    def missing(self, datasets: list[DataSet]) -> Iterator[Missing]:
        """Give what is not on record, stage by stage."""
        episodes = self.options.episodes
        missing = []
        for scorer in self.scorers:
            for dataset in datasets:
                for shot in self.options.shots:
                    stage = Stage(dataset.name, shot, scorer.name)
                    done = self.record.done(stage) if self.record else 0
                    tasks = range(broadcast_from_first(done), episodes)
                    missing.append(Missing(stage, scorer, dataset, tasks))
        total, left = len(missing) * episodes, collections.Counter[str]()
        for each in missing:
            left[each.stage.group] += len(each.tasks)
        if left.total() < total:
            _log.info("%d of %d tasks are on record", total - left.total(), total)
        with Progress(total, left, shown=self.record is not None) as self.progress:
            yield from (each for each in missing if each.tasks)

    def compute(self, missing: Missing) -> None:
        """Judge the tasks of one stage, chunk by chunk onto the record."""
        stage, scorer, dataset, tasks = missing
        self._example(dataset, stage.shot)
        method = scorer.entries[-1].name
        shown = scorer.columns.index(method)
        spec = self.options.spec(stage.shot)
        mark = time.monotonic() - self.engine.compiling
        chunks = self.engine.run(
            scorer.counter(self.engine, dataset, stage.shot),
            tasks,
            max_batch=scorer.max_batch(stage.shot, tasks.stop),
            prefetch=scorer.prefetch,
        )
        first = tasks.start
        for judged in chunks:
            if self.record is None:
                continue
            if first == tasks.start and isinstance(scorer, AdaptationScorer):
                self._trained_example(scorer, dataset, stage.shot)
            self.record.append(stage, first, judged)
            count = len(judged.counts)
            first += count
            now = time.monotonic() - self.engine.compiling
            counts = self.record.ledger.counts(stage)
            known = dict(zip(scorer.columns, counts.T, strict=True))
            accuracy_e = 100 * counts[:, shown] / diagnostics.queries(known, spec)
            self.progress.add(stage, count, now - mark, accuracy_e, method)
            mark = now

    def _example(self, dataset: DataSet, shot: Shot) -> None:
        """Keep a task for pictures; first, so that a kill does not leave it out."""
        if self.record is None:
            return
        views = self.options.features
        embedded = any(
            isinstance(scorer, FeatureScorer)
            and scorer.model is self.model
            and scorer.views == views
            for scorer in self.scorers
        )

        def features_of(rows: Int[np.ndarray, " n"]) -> Float32[np.ndarray, "n d"]:
            if embedded:
                return np.asarray(dataset.features(self.model, views)[rows])
            made = feature_fn(views, self.options.image_size)
            embed = compiled(made, self.model)
            return np.asarray(embed(self.model, dataset.pictures(rows)))

        home, header = self.record.home
        example_tasks.write(home, header, dataset, shot, features_of, self.options)

    def _trained_example(
        self, scorer: AdaptationScorer, dataset: DataSet, shot: Shot
    ) -> None:
        """Keep its features after training too, before its counts are on record.

        A kill in between leaves the tasks to be computed again, and then this too.
        """
        assert self.record is not None
        example_tasks.write(
            *(*self.record.home, dataset, shot),
            lambda _: scorer.example_features(self.engine, dataset, shot),
            *(self.options, scorer.entry),
        )
