"""A run with all its parts, made from its options and images."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdc_jax.methods.optimiser import make_optimiser, make_schedule
from rdc_jax.models.load import load_model
from rdc_jax.models.model import Model, Variables
from rdc_jax.models.preprocessing import Preprocessing
from rdc_jax.pretrain import frozen
from rdc_jax.pretrain.input_pipeline import RunImages, images_a_step, make_batches
from rdc_jax.pretrain.objectives import Objective, get_objective
from rdc_jax.pretrain.options import Options, crop_sizes
from rdc_jax.pretrain.step import TrainState, TrainStep, create_state, make_train_step
from rdc_jax.pretrain.validation import make_validate
from rdc_jax.runtime import processes
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

# Folded into the run's key, one number for each use of it.
_WEIGHTS, _STEPS = 0, 1


class Run:
    """A run that is ready to begin.

    Attributes:
      options: The config, typed and checked.
      layout: The batch is sharded, everything else replicated.
      objective: What it minimises.
      key: Random key; a step folds its number in.
      batch_size: Images a step, over all devices.
      steps_per_epoch: Steps of a pass over the images, or as the options say.
      crop_sizes: Edge of the crops at each step.
      schedule: The learning rate by step.
      validate: From variables to named accuracies; None without validation.
      train_step: Gives the step for a size of crop, compiled at its first use.
      metadata: What checkpoints say: how the model was trained, and how to load it.
    """

    def __init__(self, options: Options, images: RunImages, config: dict[str, Any]):
        """Make the parts; ``config`` is what checkpoints keep of the options.

        Raises:
          UserError: The parts do not fit together.
        """
        start = load_model(options.init_from) if options.init_from else None
        if start is not None:
            options = _as_of(start, options)
        self.options = options
        self.layout = processes.make_layout()
        class_names = images.base.class_names
        self.objective = get_objective(options.method)(options, len(class_names))
        spec = self.objective.spec
        _ = Model(spec, {}).backbone  # Fails on a wrong name.
        self._given = {} if start is None else _given(start, self.objective, options)
        embedded = options.frozen_views > 0
        if embedded:
            frozen.check(self.objective, options)
            model = Model(spec, self._given)
            images = frozen.embed_images(images, model, options)
        self._images = images
        self.batch_size = images_a_step(options, self.objective, len(images.base))
        steps_per_pass = len(images.base) // self.batch_size
        self.steps_per_epoch = options.steps_per_epoch or steps_per_pass
        self.total_steps = options.epochs * self.steps_per_epoch
        self.crop_sizes = crop_sizes(options.phases, self.total_steps)
        self.schedule = make_schedule(options.optimiser, self.total_steps)
        self.validate = None
        if images.held_out is not None:
            self.validate = make_validate(
                *(self.objective, images.held_out, options, self.layout),
                embedded=embedded,
            )
        moves = options.optimiser
        if embedded:
            moves = dataclasses.replace(moves, backbone=0.0)
        self._optimiser = make_optimiser(moves, self.schedule)
        if own := getattr(self.objective, "optimiser", None):
            self._optimiser = own(self._optimiser)
        self.metadata = {
            "config": config,
            "arch": spec.arch,
            "source": images.base.name,
            "method": options.method,
            "validated_by": self.objective.method,
            "num_classes": len(class_names),
            "class_names": list(class_names),
            "image_size": options.image_size,
        }
        if spec.arch_options:
            self.metadata["arch_options"] = dict(spec.arch_options)
        if colours := spec.preprocessing.noted:
            self.metadata["preprocessing"] = colours
        if spec.head:
            head = {"head": spec.head, "head_options": dict(spec.head_options)}
            self.metadata.update(head)
        if spec.decoder:
            options_of = dict(spec.decoder_options)
            decoder = {"decoder": spec.decoder, "decoder_options": options_of}
            self.metadata.update(decoder)
        step = functools.partial(make_train_step, self.objective, self._optimiser)
        step = functools.partial(
            step, layout=self.layout, ema=options.ema, embedded=embedded
        )
        self.train_step: Callable[[int], TrainStep] = functools.cache(step)
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
        return make_batches(self.options, self.objective, self._images, start)

    def learning_rate(self, step: int) -> float:
        """Give the learning rate of a step, counted from 1."""
        return float(self.schedule(jnp.asarray(step - 1)))

    def is_due(self, step: int, every: int) -> bool:
        """Tell whether something that happens every few steps is due at this one."""
        return step == self.total_steps or (every > 0 and step % every == 0)


def _as_of(model: Model, options: Options) -> Options:
    """Options with the architecture of the model to begin from.

    Images are decoded as for any run; the network's own colours stay.

    Raises:
      UserError: It is another architecture than the run's.
    """
    if model.arch != options.arch:
        raise UserError(
            f"{options.init_from} is a {model.arch}, the run's backbone is a "
            f"{options.arch}: set --config.arch={model.arch}, or another "
            "--config.init_from"
        )
    own = model.preprocessing
    return dataclasses.replace(
        options,
        arch_options=model.spec.arch_options,
        preprocessing=Preprocessing(mean=own.mean, std=own.std),
    )


def _given(model: Model, objective: Objective, options: Options) -> Variables:
    """The weights to begin from: the backbone's, and those of a head of the same name.

    Raises:
      UserError: The head is for other tasks or images.
    """
    name = objective.spec.head
    # The classes of a classifier are its own.
    both = name not in (None, "linear") and model.spec.head == name
    given = {
        kind: {part: tree[part] for part in parts}
        for kind, tree in model.variables.items()
        if (parts := sorted({"backbone", *(["head"] if both else [])} & tree.keys()))
    }
    if not both:
        return given
    init = functools.partial(objective.init, size=options.image_size)
    drawn = Model(objective.spec, jax.eval_shape(init, jax.random.key(0)))
    here, there = (
        jax.tree.map(jnp.shape, x.variables_of("head")) for x in (drawn, model)
    )
    if here != there:
        raise UserError(
            f"the {name} head of {options.init_from} is for tasks of other ways or "
            f"images of another size than {options.image_size} pixels: set "
            "--config.episode.way and --config.image_size as in that run"
        )
    _log.info("the %s head begins from %s", name, options.init_from)
    return given
