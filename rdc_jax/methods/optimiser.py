"""Optimisers and learning rates by name."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool

from rdc_jax.runtime.config_values import at_least, below_one, one_of

OPTIMISERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "cosine")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimiserOptions:
    """How the weights move.

    Attributes:
      name: ``adam``, ``adamw`` or ``sgd`` (Nesterov momentum).
      learning_rate: The highest of the run.
      schedule: ``constant`` or ``cosine`` (to 0 at the last step).
      warmup_steps: Steps of linear rise to the highest rate.
      momentum: Of SGD.
      weight_decay: On kernels only, not on biases or batch-norm parameters.
      backbone: Multiple of the rate for the backbone's weights; with 0 they stay.
    """

    name: str
    learning_rate: float
    schedule: str
    warmup_steps: int
    momentum: float
    weight_decay: float
    backbone: float = 1.0

    def __post_init__(self) -> None:
        one_of("optimiser.name", self.name, OPTIMISERS)
        one_of("optimiser.schedule", self.schedule, SCHEDULES)
        at_least("optimiser.learning_rate", self.learning_rate, 0.0)
        at_least("optimiser.warmup_steps", self.warmup_steps, 0)
        at_least("optimiser.weight_decay", self.weight_decay, 0.0)
        at_least("optimiser.backbone", self.backbone, 0.0)
        below_one("optimiser.momentum", self.momentum)


def make_schedule(options: OptimiserOptions, total_steps: int) -> optax.Schedule:
    """Make the learning rate as a function of the step.

    Args:
      options: How the weights move.
      total_steps: Steps of the whole run.

    Returns:
      The schedule.
    """
    peak, warmup = options.learning_rate, options.warmup_steps
    if options.schedule == "cosine":
        main = optax.cosine_decay_schedule(peak, max(1, total_steps - warmup))
    else:
        main = optax.constant_schedule(peak)
    if not warmup:
        return main
    rise = optax.linear_schedule(peak / (warmup + 1), peak, warmup)
    return optax.join_schedules([rise, main], [warmup])


def make_optimiser(
    options: OptimiserOptions, schedule: optax.Schedule
) -> optax.GradientTransformation:
    """Make the optimiser.

    Args:
      options: How the weights move.
      schedule: The learning rate.

    Returns:
      An optax transformation.
    """
    made = _by_name(options, schedule)
    if options.backbone == 1:
        return made
    if options.backbone == 0:  # No state is kept for what does not move.
        made = optax.masked(made, _is_of_others)
    slower = optax.masked(optax.scale(options.backbone), _is_of_backbone)
    return optax.chain(made, slower)


def _by_name(
    options: OptimiserOptions, schedule: optax.Schedule
) -> optax.GradientTransformation:
    decay = optax.add_decayed_weights(options.weight_decay, mask=_is_kernel)
    if options.name == "sgd":
        return optax.chain(
            decay, optax.sgd(schedule, momentum=options.momentum, nesterov=True)
        )
    if options.name == "adam":
        return optax.chain(decay, optax.adam(schedule))
    return optax.adamw(schedule, weight_decay=options.weight_decay, mask=_is_kernel)


def dampened_sgd(
    learning_rate: float, *, momentum: float, dampening: float, weight_decay: float
) -> optax.GradientTransformation:
    """Make torch's ``SGD`` with dampening, which optax has not.

    The first velocity is the gradient, later ones are ``momentum * v + (1 - dampening)
    * g``: so with .9 for both a step is a moving average. The decay is part of the
    gradient, of biases and batch-norm parameters too.

    Args:
      learning_rate: Of every step.
      momentum: Share of the velocity that is kept.
      dampening: Share of the gradient that is left out, but for the first one.
      weight_decay: Multiple of the weights that is added to the gradient.

    Returns:
      An optax transformation.
    """
    return optax.chain(
        optax.add_decayed_weights(weight_decay),
        _dampened_trace(momentum, dampening),
        optax.scale(-learning_rate),
    )


class _Dampened(NamedTuple):
    velocity: Any
    begun: Bool[Array, ""]


def _dampened_trace(momentum: float, dampening: float) -> optax.GradientTransformation:
    def init(params: Any) -> _Dampened:
        return _Dampened(jax.tree.map(jnp.zeros_like, params), jnp.zeros((), bool))

    def update(grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        share = jnp.where(state.begun, 1 - dampening, 1.0)
        velocity = jax.tree.map(
            lambda v, g: momentum * v + share * g, state.velocity, grads
        )
        return velocity, _Dampened(velocity, jnp.ones((), bool))

    return optax.GradientTransformation(init, update)


def _is_of_backbone(params: Any) -> Any:
    return {
        part: jax.tree.map(lambda _, mine=part == "backbone": mine, tree)
        for part, tree in params.items()
    }


def _is_of_others(params: Any) -> Any:
    return jax.tree.map(lambda mine: not mine, _is_of_backbone(params))


def _is_kernel(params: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.ndim(leaf) > 1, params)
