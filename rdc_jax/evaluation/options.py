"""What an evaluation is told, as typed values.

A ``ConfigDict`` is read here and nowhere else; ``configs/eval.py`` has the defaults.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, Literal, cast

import jax
import numpy as np

from rdc_jax.core.params import RDCParams
from rdc_jax.data.task_spec import Range, TaskSpec
from rdc_jax.data.task_spec import read as read_number
from rdc_jax.methods import Method, Task, get_method, load_plugin, parameters
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.methods.views import Views
from rdc_jax.models.model import Model
from rdc_jax.models.preprocessing import FIELD
from rdc_jax.runtime.config_values import Shot, at_least, words
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row of the tables.

    Attributes:
      name: As ``config.methods`` has it: ``rdc(k=6)``, ``rdc@other``.
      method: With these parameters.
    """

    name: str
    method: Method

    @property
    def checkpoint(self) -> str:
        """Of ``config.checkpoints``; empty for ``config.checkpoint``."""
        return self.name.partition("@")[2]

    @property
    def title(self) -> str:
        """The method's title, with the parameters and the model that the name sets."""
        _, pairs = parameters.split(self.name.partition("@")[0])
        values = [f"{name}={value}" for name, value in pairs.items()]
        values += [self.checkpoint] if self.checkpoint else []
        said = f" ({', '.join(values)})" if values else ""
        return self.method.title + said

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse tasks or a model that the method cannot use.

        Raises:
          UserError: It names the method.
        """
        try:
            self.method.check(task, model)
        except UserError as error:
            raise UserError(f"method {self.name}: {error}") from error

    @property
    def transductive(self) -> bool:
        """Whether a query's answer depends on the others."""
        return self.method.transductive or self.method.answering.transductive

    @property
    def uses_neighbours(self) -> bool:
        """Whether it works by neighbour sets."""
        return self.method.uses_neighbours or self.method.answering.uses_neighbours


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """One evaluation.

    Attributes:
      title: What the tables are headed by.
      datasets: What ``rdc_jax.data.open_source`` takes, one for each data set.
      data_dir: Where named data sets are.
      cache_dir: For decoded pixels and features; empty: ``cache`` in the work
        directory.
      split: Whose classes the tasks are drawn from.
      skip_unreadable: Leave images out that cannot be decoded.
      checkpoint: Of the model; empty: one is trained as ``pretrain`` says.
      checkpoints: Of other models, by the name that follows a method's: ``rdc@name``.
      source: Data set that distractors are drawn from, where a method asks for them.
      image_size: Edge of the network's input in pixels.
      preprocessing: What is done to images otherwise than the checkpoint says, see
        ``Preprocessing.replaced``.
      features: What is taken of an image and of the network's layers.
      pretrain: A config of ``configs/pretrain.py``, or empty.
      methods: What to evaluate.
      baseline: Name of the method that others are compared with.
      plugins: Python files with methods of the user's own.
      systems: Whether tables show other systems' published rows.
      way: Classes of a task.
      ways: A range that they are drawn from for each task, instead.
      shots: Labelled images a class, one set of tasks each: a number, or in words what
        they are drawn by (``1-10``, ``any``).
      max_support: Most labelled images of a task, where shots are ``any``.
      query: Images to classify a class.
      queries: A range that they are drawn from for each task, instead.
      distractor_queries: Images of none of its classes that a task has to classify.
      dirichlet: Concentration of uneven class proportions; None: even.
      episodes: Tasks for each data set and shot.
      predictions: Whether each query's answers and distances are written.
      seed: Another seed is another set of tasks.
      chunk: Tasks at a time, over all devices; 0: by an estimate of the memory.
      rdc: Parameters of RDC.
      choose_on: Data set and split whose tasks choose among parameters.
      finetune: How methods that need images train on a task.
      choice: What was chosen there.
    """

    title: str
    datasets: tuple[str, ...]
    data_dir: str
    cache_dir: str
    split: str
    skip_unreadable: bool
    checkpoint: str
    checkpoints: Mapping[str, str]
    source: str
    image_size: int
    preprocessing: Mapping[str, str]
    features: Views
    pretrain: Mapping[str, Any]
    methods: tuple[Entry, ...]
    baseline: str
    plugins: tuple[pathlib.Path, ...]
    systems: bool
    way: int
    ways: int | Range | None
    shots: tuple[Shot, ...]
    max_support: int
    query: int
    queries: int | Range | None
    distractor_queries: int
    dirichlet: float | None
    episodes: int
    predictions: bool
    seed: int
    chunk: int
    choose_on: str
    rdc: RDCParams
    finetune: FinetuneOptions
    choice: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        at_least("image_size", self.image_size, 8)
        FIELD.replaced(self.preprocessing, self.image_size)
        at_least("way", self.way, 2)
        at_least("episodes", self.episodes, 1)
        at_least("seed", self.seed, 0)
        at_least("chunk", self.chunk, 0)
        at_least("distractor_queries", self.distractor_queries, 0)
        for entry in self.methods:
            self.views(entry)  # Mistakes in them are told.
            for shot in self.shots:
                entry.check(self.task(shot, (1,)))
        if not (self.checkpoint or self.pretrain):
            raise UserError(
                "config.checkpoint is empty: give the work directory of run_pretrain.py"
                " or a torch .tar, as in --config.checkpoint=PATH"
            )

    def views(self, entry: Entry) -> Views | None:
        """What a method's features are taken of; None if it works on maps."""
        if entry.method.inputs == "maps":
            return None
        return self.features.asked_by(entry.method)

    def spec(self, shot: Shot) -> TaskSpec:
        """The shape of the tasks of one shot."""
        return TaskSpec(
            way=self.ways or self.way,
            shot=_drawn(shot),
            query=self.queries or self.query,
            dirichlet=self.dirichlet,
            max_support=self.max_support,
        )

    def queries_in(self, spec: TaskSpec) -> int:
        """Rows to classify in a task, those of none of its classes among them."""
        return spec.query_size + self.distractor_queries

    @property
    def varies(self) -> bool:
        """Whether tasks differ in size: then they are filled up, with masks."""
        return any(self.spec(shot).varies for shot in self.shots)

    def task(self, shot: Shot, row: tuple[int, ...], dtype: Any = np.float32) -> Task:
        """The shapes of a task whose rows are of this shape."""
        spec, make = self.spec(shot), jax.ShapeDtypeStruct
        s, q = spec.support_size, self.queries_in(spec)
        return Task(
            make((s, *row), dtype),
            make((s,), np.int32),
            make((q, *row), dtype),
            num_classes=spec.most_ways,
            support_mask=make((s,), bool) if self.varies else None,
            query_mask=make((q,), bool) if self.varies else None,
        )

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Options":
        """Read a config; every field of it is used, and every field is checked.

        Raises:
          UserError: A value is not possible; the message names the field.
        """
        values = {**config}
        plugins = words("plugins", values.pop("plugins"), empty=True)
        loaded = tuple(load_plugin(path) for path in plugins)
        features = values.pop("features")
        checkpoints = _paths(values.pop("checkpoints"))
        groups: dict[str, Any] = {
            "rdc": _rdc_params(values.pop("rdc")),
            "finetune": FinetuneOptions.from_config(values.pop("finetune")),
        }

        def entry(name: str) -> Entry:
            if "|" in name:
                raise UserError(
                    f"method {name!r}: to choose among values, name the data set and "
                    "split to choose on, as in --config.choose_on=miniimagenet:val"
                )
            text, _, checkpoint = name.partition("@")
            if checkpoint and checkpoint not in checkpoints:
                raise UserError(
                    f"method {name!r}: there is no config.checkpoints.{checkpoint}: "
                    f"give it as in --config.checkpoints.{checkpoint}=PATH"
                )
            size = values["image_size"]
            return Entry(name, get_method(text, image_size=size, **groups))

        entries = tuple(map(entry, words("methods", values.pop("methods"))))
        baseline = entry(values.pop("baseline")).name
        return cls(
            datasets=words("datasets", values.pop("datasets")),
            checkpoints=checkpoints,
            features=Views.from_text(features["views"], features["layers"]),
            plugins=loaded,
            methods=entries,
            baseline=baseline,
            shots=_shots(values.pop("shots")),
            ways=_range("ways", values.pop("ways")),
            queries=_range("queries", values.pop("queries")),
            dirichlet=values.pop("dirichlet") or None,
            **groups,
            **values,
        )


def _shots(text: str) -> tuple[Shot, ...]:
    """Read numbers, ranges and ``any``; each but a number stays a word.

    >>> _shots("1,5,1-10,any")
    (1, 5, '1-10', 'any')
    """
    found: dict[Shot, None] = {}
    for word in words("shots", str(text)):
        drawn = _drawn(word)
        found[drawn if isinstance(drawn, int) else word] = None
    return tuple(found)


def _drawn(shot: Shot) -> int | Range | Literal["any"]:
    if isinstance(shot, int) or shot == "any":
        return cast(int | Literal["any"], shot)
    return read_number("config.shots", shot)


def _range(name: str, text: str) -> int | Range | None:
    return read_number(f"config.{name}", text) if text else None


def _paths(text: str) -> dict[str, str]:
    """Read ``name=path,name=path``."""
    pairs = [word.partition("=") for word in words("checkpoints", text, empty=True)]
    for name, _, path in pairs:
        if not (name.isidentifier() and path):
            raise UserError(
                f"config.checkpoints is {text!r}: give names and paths, as in "
                "--config.checkpoints.NAME=PATH"
            )
    return {name: path for name, _, path in pairs}


def _rdc_params(fields: Mapping[str, Any]) -> RDCParams:
    try:
        return RDCParams(**fields)
    except ValueError as error:
        message = str(error).replace("RDCParams.", "config.rdc.")
        raise UserError(message) from error
