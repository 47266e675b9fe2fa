"""Optimisers and learning rates by name."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from rdc_jax.training.options import OptimiserOptions


def make_schedule(options: OptimiserOptions, total_steps: int) -> optax.Schedule:
    """Make the learning rate as a function of the step.

    Args:
      options: How the weights move.
      total_steps: Of the run.

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
    decay = optax.add_decayed_weights(options.weight_decay, mask=_is_kernel)
    if options.name == "sgd":
        return optax.chain(
            decay, optax.sgd(schedule, momentum=options.momentum, nesterov=True)
        )
    if options.name == "adam":
        return optax.chain(decay, optax.adam(schedule))
    return optax.adamw(schedule, weight_decay=options.weight_decay, mask=_is_kernel)


def _is_kernel(params: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.ndim(leaf) > 1, params)
