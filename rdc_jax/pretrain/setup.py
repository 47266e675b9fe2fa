"""Puts the parts of a run together, as its options say."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import optax
from jaxtyping import PRNGKeyArray

from rdc_jax import models
from rdc_jax.data.episodes import EpisodeSpec
from rdc_jax.models.optimiser import make_optimiser, make_schedule
from rdc_jax.pretrain.images import RunImages
from rdc_jax.pretrain.input_pipeline import image_batches, task_batches
from rdc_jax.pretrain.loop import Plan
from rdc_jax.pretrain.objectives import CrossEntropy, Objective, ProtoNet
from rdc_jax.pretrain.options import Options
from rdc_jax.pretrain.state import TrainState, create_state
from rdc_jax.pretrain.step import Batch, TrainStep, make_train_step
from rdc_jax.pretrain.validation import Validate, make_validate
from rdc_jax.pretrain.warm_start import read_backbone, with_backbone
from rdc_jax.runtime import processes
from rdc_jax.runtime.errors import UserError

# Numbers folded into the run's key, one for each use of it.
_WEIGHTS, _AUGMENTATION = 0, 1


class Run(NamedTuple):
    """A run that is ready to begin.

    Attributes:
      plan: What the loop follows.
      initial_state: Makes the state before the first step.
    """

    plan: Plan
    initial_state: Callable[[], TrainState]


def assemble(options: Options, images: RunImages, metadata: dict[str, Any]) -> Run:
    """Put a run together.

    Args:
      options: Of the run.
      images: To train on and to judge by.
      metadata: To save in its checkpoints, beside what readers of weights need.

    Returns:
      The run.

    Raises:
      UserError: The parts do not fit.
    """
    layout = processes.make_layout()
    key = jax.random.key(options.seed)
    backbone = models.create(options.arch, dtype=options.dtype, conv=options.conv)
    class_names = images.base.class_names
    objective = make_objective(options, backbone, len(class_names))
    batch_size, size_source = images_a_step(options)
    processes.check_batch_size(batch_size, size_source)
    steps_per_pass = len(images.base) // batch_size
    if not steps_per_pass:
        raise UserError(
            f"a step takes {batch_size} images, {options.source} has "
            f"{len(images.base)}: lower {size_source}"
        )
    steps_per_epoch = options.steps_per_epoch or steps_per_pass
    total_steps = options.epochs * steps_per_epoch
    schedule = make_schedule(options.optimiser, total_steps)
    optimiser = make_optimiser(options.optimiser, schedule)
    plan = Plan(
        key=jax.random.fold_in(key, _AUGMENTATION),
        train_step=_steps_by_size(objective, optimiser, options.ema, layout),
        batches=functools.partial(_batches, options, images),
        layout=layout,
        phases=options.phases,
        schedule=schedule,
        total_steps=total_steps,
        steps_per_epoch=steps_per_epoch,
        batch_size=batch_size,
        log_every=options.log_every,
        checkpoint_every=options.checkpoint_every,
        validate_every=options.validation.every_epochs * steps_per_epoch,
        validate=_validate(options, images, backbone, layout),
        metadata={
            **metadata,
            "arch": options.arch,
            "source": images.base.name,
            "method": options.method,
            "num_classes": len(class_names),
            "class_names": list(class_names),
            "image_size": options.image_size,
        },
    )
    return Run(plan, _initial_state(options, objective, optimiser, key, layout))


def make_objective(options: Options, backbone: Any, num_classes: int) -> Objective:
    """Make the network and loss that ``options.method`` names."""
    if options.method == "protonet":
        return ProtoNet(backbone, options.episode.way, options.episode.shot)
    return CrossEntropy(backbone, num_classes, options.label_smoothing)


def images_a_step(options: Options) -> tuple[int, str]:
    """Count the images of one step over all devices; say what sets the number."""
    task = options.episode
    if options.method == "protonet":
        fields = "way x (shot + query) of --config.episode"
        return task.way * (task.shot + task.query), fields
    return options.batch_size, "--config.batch_size"


def _batches(options: Options, images: RunImages, start: int) -> Iterator[Batch]:
    """This process's rows of each step's batch, from a step on."""
    if options.method == "protonet":
        task = dataclasses.asdict(options.episode)
        return task_batches(
            images.base, EpisodeSpec(**task), seed=options.seed, start=start
        )
    return image_batches(
        images.base, options.batch_size, seed=options.seed, start=start
    )


def _steps_by_size(
    objective: Objective,
    optimiser: optax.GradientTransformation,
    ema: float,
    layout: processes.Layout,
) -> Callable[[int], TrainStep]:
    @functools.cache
    def train_step(size: int) -> TrainStep:
        return make_train_step(objective, optimiser, size=size, layout=layout, ema=ema)

    return train_step


def _validate(
    options: Options, images: RunImages, backbone: Any, layout: processes.Layout
) -> Validate | None:
    if images.held_out is None:
        return None
    return make_validate(
        backbone,
        images.held_out,
        options.validation,
        size=options.image_size,
        seed=options.seed,
        layout=layout,
    )


def _initial_state(
    options: Options,
    objective: Objective,
    optimiser: optax.GradientTransformation,
    key: PRNGKeyArray,
    layout: processes.Layout,
) -> Callable[[], TrainState]:
    """The same state in every process, made in place on every device."""
    given = read_backbone(options.init_from, options.arch)

    def initial_state() -> TrainState:
        weights_key = jax.random.fold_in(key, _WEIGHTS)
        variables = objective.init(weights_key, options.image_size)
        if given is not None:
            variables = with_backbone(variables, given)
        return create_state(variables, optimiser, average=options.ema > 0)

    return jax.jit(initial_state, out_shardings=layout.replicated)
