"""What an evaluation is told, as typed values.

A ``ConfigDict`` is read here and nowhere else; ``configs/eval.py`` has the defaults.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from rdc_jax.core.params import RDCParams
from rdc_jax.data.episodes import EpisodeSpec
from rdc_jax.methods import Method, Settings, find_variant, load_plugin
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.runtime.config_values import at_least, numbers, words
from rdc_jax.runtime.errors import UserError


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
      checkpoint: Of the backbone; empty: one is trained as ``pretrain`` says.
      image_size: Edge of the network's input in pixels.
      pretrain: A config of ``configs/pretrain.py``, or empty.
      methods: What to evaluate.
      baseline: Name of the method that others are compared with.
      plugins: Python files with methods of the user's own.
      systems: Whether tables show other systems' published rows.
      way: Classes of a task.
      shots: Labelled images a class, one set of tasks each.
      query: Images to classify a class.
      dirichlet: Concentration of uneven class proportions; None: even.
      episodes: Tasks for each data set and shot.
      seed: Of the tasks.
      chunk: Tasks at a time, over all devices; 0: by an estimate of the memory.
      rdc: Parameters of RDC.
      finetune: How methods that need images train on a task.
    """

    title: str
    datasets: tuple[str, ...]
    data_dir: str
    cache_dir: str
    split: str
    skip_unreadable: bool
    checkpoint: str
    image_size: int
    pretrain: Mapping[str, Any]
    methods: tuple[Method, ...]
    baseline: str
    plugins: tuple[pathlib.Path, ...]
    systems: bool
    way: int
    shots: tuple[int, ...]
    query: int
    dirichlet: float | None
    episodes: int
    seed: int
    chunk: int
    rdc: RDCParams
    finetune: FinetuneOptions

    def __post_init__(self) -> None:
        at_least("image_size", self.image_size, 8)
        at_least("way", self.way, 2)
        at_least("episodes", self.episodes, 1)
        at_least("seed", self.seed, 0)
        at_least("chunk", self.chunk, 0)
        if not 0 <= self.rdc.lam <= 1:
            raise UserError(f"config.rdc.lam is {self.rdc.lam}: it must be in 0 to 1")
        for shot in self.shots:
            check_neighbours(self, self.spec(shot))
        if not (self.checkpoint or self.pretrain):
            raise UserError(
                "config.checkpoint is empty: give the work directory of run_pretrain.py"
                " or a torch .tar, as in --config.checkpoint=PATH"
            )

    @property
    def settings(self) -> Settings:
        """What methods are told."""
        return Settings(
            num_classes=self.way,
            rdc=self.rdc,
            finetune=self.finetune,
            image_size=self.image_size,
        )

    def spec(self, shot: int) -> EpisodeSpec:
        """The shape of the tasks of one shot."""
        return EpisodeSpec(
            way=self.way, shot=shot, query=self.query, dirichlet=self.dirichlet
        )

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Options":
        """Read a config; every field of it is used, and every field is checked.

        Args:
          config: A plain dict of the fields of ``configs/eval.py``.

        Raises:
          UserError: A value is not possible; the message names the field.
        """
        values = {**config}
        plugins = words("plugins", values.pop("plugins"), empty=True)
        loaded = tuple(load_plugin(path) for path in plugins)
        return cls(
            datasets=words("datasets", values.pop("datasets")),
            plugins=loaded,
            methods=tuple(
                find_variant(name) for name in words("methods", values.pop("methods"))
            ),
            baseline=find_variant(values.pop("baseline")).name,
            shots=tuple(dict.fromkeys(numbers("shots", values.pop("shots")))),
            dirichlet=values.pop("dirichlet") or None,
            rdc=_rdc_params(values.pop("rdc")),
            finetune=FinetuneOptions.from_config(values.pop("finetune")),
            **values,
        )


def check_neighbours(options: Options, spec: EpisodeSpec) -> None:
    """Refuse neighbourhoods that are the whole task.

    Args:
      options: Of the run.
      spec: The shape of its tasks.

    Raises:
      UserError: ``k`` or ``k2`` is too large for a method that uses it.
    """
    rows = spec.support_size + spec.query_size
    if not any(method.calibrates for method in options.methods):
        return
    for name, value, most in (
        ("k", options.rdc.k, rows - 1),
        ("k2", options.rdc.k2, rows),
    ):
        if value > most:
            raise UserError(
                f"config.rdc.{name} is {value}, but a {spec.shot}-shot task has {rows} "
                f"images: use at most {most}, or tasks with more queries"
            )


def _rdc_params(fields: Mapping[str, Any]) -> RDCParams:
    try:
        return RDCParams(**fields)
    except ValueError as error:
        message = str(error).replace("RDCParams.", "config.rdc.")
        raise UserError(message) from error
