"""A run with all its parts, made from its options and images."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdc_jax.data.pixels import PixelCache
from rdc_jax.methods.optimiser import make_optimiser, make_schedule
from rdc_jax.models.model import Model, Variables, load_backbone
from rdc_jax.pretrain.input_pipeline import RunImages, images_a_step, make_batches
from rdc_jax.pretrain.objectives import Objective, get_objective
from rdc_jax.pretrain.options import Options
from rdc_jax.pretrain.phases import crop_sizes
from rdc_jax.pretrain.step import TrainState, TrainStep, create_state, make_train_step
from rdc_jax.pretrain.validation import make_validate
from rdc_jax.runtime import processes
from rdc_jax.runtime.errors import UserError

# Folded into the run's key, one number for each use of it.
_WEIGHTS, _STEPS = 0, 1


class Run:
    """A run that is ready to begin.

    Attributes:
      options: Of the run.
      layout: The batch is sharded, everything else replicated.
      objective: What it minimises.
      key: Of its steps.
      batch_size: Images a step, over all devices.
      steps_per_epoch: Steps of a pass over the images, or as the options say.
      crop_sizes: Edge of the crops at each step.
      schedule: The learning rate by step.
      validate: From variables to named accuracies; None without validation.
      metadata: Of its checkpoints: how the model was trained, and how to load it.
      train_step: Gives the step for a size of crop, compiled at its first use.
    """

    def __init__(self, options: Options, images: RunImages, config: dict[str, Any]):
        """Put the parts together.

        Args:
          options: Of the run, typed.
          images: To train on, and to validate on.
          config: The dict the options were read from; checkpoints keep it.

        Raises:
          UserError: They do not fit.
        """
        self.options, self._base = options, images.base
        self.layout = processes.make_layout()
        classes = len(images.base.class_names)
        self.objective = get_objective(options.method)(options, classes)
        _ = Model(self.objective.spec, {}).backbone  # Fails on a wrong name.
        self.batch_size = images_a_step(
            options, self.objective.batches, len(images.base)
        )
        steps_per_pass = len(images.base) // self.batch_size
        self.steps_per_epoch = options.steps_per_epoch or steps_per_pass
        self.total_steps = options.epochs * self.steps_per_epoch
        self.crop_sizes = crop_sizes(options.phases, self.total_steps)
        self.schedule = make_schedule(options.optimiser, self.total_steps)
        self.validate = None
        if images.held_out is not None:
            self.validate = make_validate(
                self.objective, images.held_out, options, self.layout
            )
        self._optimiser = make_optimiser(options.optimiser, self.schedule)
        self._given = _read_backbone(options.init_from, options.arch)
        self.train_step: Callable[[int], TrainStep] = functools.cache(
            functools.partial(
                make_train_step,
                self.objective,
                self._optimiser,
                layout=self.layout,
                ema=options.ema,
            )
        )
        noted = _metadata(options, self.objective, images.base)
        self.metadata = {"config": config, **noted}
        key = jax.random.key(options.seed)
        self._weights_key = jax.random.fold_in(key, _WEIGHTS)
        self.key = jax.random.fold_in(key, _STEPS)

    def initial_state(self) -> TrainState:
        """Make the state before the first step; pure, and the same in every process."""
        size = self.options.image_size
        variables = self.objective.init(self._weights_key, size)
        variables = {
            kind: {**parts, **self._given.get(kind, {})}
            for kind, parts in variables.items()
        }
        average = self.options.ema > 0
        return create_state(self.objective, self._optimiser, variables, average=average)

    def batches(self, start: int) -> Iterator[dict[str, np.ndarray]]:
        """Make this process's rows of each batch, from a step on."""
        kind = self.objective.batches
        return make_batches(self.options, kind, self._base, start)

    def learning_rate(self, step: int) -> float:
        """Give the learning rate of a step, counted from 1."""
        return float(self.schedule(jnp.asarray(step - 1)))

    def is_due(self, step: int, every: int) -> bool:
        """Tell whether something that happens every few steps is due at this one."""
        return step == self.total_steps or (every > 0 and step % every == 0)


def _metadata(
    options: Options, objective: Objective, base: PixelCache
) -> dict[str, Any]:
    """What readers of a checkpoint need."""
    spec = objective.spec
    parts: dict[str, Any] = {}
    if spec.head:
        parts |= {"head": spec.head, "head_options": dict(spec.head_options)}
    if spec.decoder:
        parts |= {"decoder": spec.decoder}
    return {
        **parts,
        "arch": spec.arch,
        "source": base.name,
        "method": options.method,
        "validated_by": objective.method,
        "num_classes": len(base.class_names),
        "class_names": list(base.class_names),
        "image_size": options.image_size,
    }


def _read_backbone(path: str, arch: str) -> Variables:
    """Weights that a run starts from: a backbone, or nothing without a path."""
    if not path:
        return {}
    model = load_backbone(path)
    if model.arch != arch:
        raise UserError(
            f"{path} is a {model.arch}, the run's backbone is a {arch}: "
            f"set --config.arch={model.arch}, or another --config.init_from"
        )
    return model.variables
