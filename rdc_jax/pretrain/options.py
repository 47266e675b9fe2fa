"""Options of a pre-training run, as typed values.

A ``ConfigDict`` is read here and nowhere else; ``configs/pretrain.py`` has the
defaults.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.methods.optimiser import OptimiserOptions
from rdc_jax.models.preprocessing import FIELD, Preprocessing
from rdc_jax.models.resnet import Norm
from rdc_jax.runtime.config_values import at_least, below_one, numbers, one_of, words
from rdc_jax.runtime.errors import UserError

Phases = tuple[tuple[int, float], ...]
"""Sizes of crops, and the share of the run's steps at each."""


def parse_phases(text: str, image_size: int) -> Phases:
    """Read phases written as ``size:share,...``; the rest is at the full size.

    Raises:
      UserError: The text cannot be read, or the shares exceed 1.

    >>> parse_phases("48:0.5,64:0.25", 84)
    ((48, 0.5), (64, 0.25), (84, 0.25))
    """
    phases = []
    for part in filter(None, text.split(",")):
        try:
            size, share = part.split(":")
            phases.append((int(size), float(share)))
        except ValueError:
            raise UserError(
                f"config.phases has {part!r}: write size:share,..., as in 48:0.5,64:0.3"
            ) from None
    rest = 1.0 - sum(share for _, share in phases)
    if any(size < 1 or not share > 0 for size, share in phases) or rest < -1e-9:
        raise UserError(
            f"config.phases is {text!r}: sizes and shares must be positive, and the "
            "shares may not add to more than 1"
        )
    return (*phases, (image_size, rest)) if rest > 1e-9 else tuple(phases)


def crop_sizes(phases: Phases, total_steps: int) -> list[int]:
    """List the size of the crops at each step of a run.

    >>> crop_sizes(parse_phases("8:0.5", 16), 4)
    [8, 8, 16, 16]
    """
    sizes: list[int] = []
    end = 0.0
    for size, share in phases:
        end += share
        sizes += [size] * (round(end * total_steps) - len(sizes))
    return sizes


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationOptions:
    """Few-shot accuracy on classes that training never sees.

    Attributes:
      source: Source of the images; empty means the training source.
      split: Its split.
      way: Classes of a task.
      shots: Support images a class, one accuracy each; empty: as in training.
      query: Query images a class.
      episodes: Number of tasks a shot; 0 means no validation.
      every_epochs: Epochs between validations; each one also saves a checkpoint.
    """

    source: str
    split: str
    way: int
    shots: tuple[int, ...]
    query: int
    episodes: int
    every_epochs: int

    def __post_init__(self) -> None:
        at_least("validation.way", self.way, 2)
        at_least("validation.query", self.query, 1)
        at_least("validation.episodes", self.episodes, 0)
        at_least("validation.every_epochs", self.every_epochs, 1)
        for shot in self.shots:
            at_least("validation.shots", shot, 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """One pre-training run.

    Attributes:
      source: Source of the training images (``rdc_jax.data.open_source``).
      split: Its split.
      data_dir: Where named sources are.
      cache_dir: Where decoded pixels go; empty means ``cache`` in the work directory.
      arch: Backbone (``rdc_jax.models.BACKBONES``).
      conv: Implementation of its convolutions.
      dtype: Of its computation: ``float32`` or ``bfloat16``.
      init_from: Checkpoint whose backbone the run starts from; empty for none.
      method: Objective of training (``rdc_jax.pretrain.objectives``).
      plugins: Python files that register objectives, backbones or sources of one's own.
      image_size: Size of the crops, and of the images of validation.
      stored_size: Edge of the squares in which decoded images are kept; 0 means that
        from which the test transform crops.
      frozen_views: With 0 the backbone trains too. Else it stays as it is, and the head
        trains on what it makes of so many versions of each image, computed once.
      phases: Smaller crops for the beginning of the run.
      epochs: Number of epochs.
      steps_per_epoch: Steps of an epoch; 0 means those of a pass over the images.
      batch_size: Images a step, over all devices; objectives on tasks have their own.
      label_smoothing: Share of the target spread over all classes.
      ema: Decay of the averaged weights; 0 means none.
      seed: Of weights, order, augmentation and tasks.
      log_every: Steps between lines of ``metrics.jsonl``.
      checkpoint_every: Steps between checkpoints beside those of validation; 0
        means none.
      optimiser: Its name, learning rate and schedule.
      episode: The tasks of objectives on tasks, one a step.
      validation: Tasks on held-out classes.
      last_norm: Of the blocks of residual networks, see ``BasicBlock``. Not of the
        config: objectives set it for those that they wrap.
      arch_options: Of the backbone, as of ``init_from``.
      preprocessing: Of images for the backbone, as of ``init_from``.
    """

    source: str
    split: str
    data_dir: str
    cache_dir: str
    arch: str
    conv: str
    dtype: str
    init_from: str
    method: str
    plugins: tuple[str, ...]
    image_size: int
    stored_size: int
    frozen_views: int
    phases: Phases
    epochs: int
    steps_per_epoch: int
    batch_size: int
    label_smoothing: float
    ema: float
    seed: int
    log_every: int
    checkpoint_every: int
    optimiser: OptimiserOptions
    episode: TaskSpec
    validation: ValidationOptions
    last_norm: Norm | None = None
    arch_options: tuple[tuple[str, Any], ...] = ()
    preprocessing: Preprocessing = FIELD

    def __post_init__(self) -> None:
        one_of("dtype", self.dtype, ("float32", "bfloat16"))
        for name in ("image_size", "epochs", "batch_size", "log_every"):
            at_least(name, getattr(self, name), 1)
        for name in ("stored_size", "steps_per_epoch", "checkpoint_every", "seed"):
            at_least(name, getattr(self, name), 0)
        at_least("frozen_views", self.frozen_views, 0)
        if self.frozen_views and not self.init_from:
            raise UserError(
                f"config.frozen_views={self.frozen_views} trains on the features of a "
                "network: say of which one by --config.init_from"
            )
        if self.frozen_views and len(self.phases) > 1:
            raise UserError(
                f"config.phases={self.phases} change the size of crops, but a network "
                "that stays as it is embeds them once: set --config.phases="
            )
        at_least("episode.way", self.episode.most_ways, 2)
        below_one("label_smoothing", self.label_smoothing)
        below_one("ema", self.ema)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Options":
        """Read a config, of which every field is used and checked.

        Raises:
          UserError: A value is not possible; the message names the field.
        """
        values = {**config}
        validation = {**values.pop("validation")}
        episode = TaskSpec(**values.pop("episode"))
        said = validation.pop("shots")
        shots = numbers("validation.shots", said) if said else (episode.most_shots,)
        return cls(
            # Configs from before there were plugins have no such field.
            plugins=words("plugins", values.pop("plugins", ""), empty=True),
            frozen_views=values.pop("frozen_views", 0),  # Nor this one.
            phases=parse_phases(values.pop("phases"), values["image_size"]),
            optimiser=OptimiserOptions(**values.pop("optimiser")),
            episode=episode,
            validation=ValidationOptions(shots=shots, **validation),
            **values,
        )
