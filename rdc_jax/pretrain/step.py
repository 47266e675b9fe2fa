"""The compiled step of training."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from rdc_jax.data.transforms import train_batch
from rdc_jax.pretrain.objectives import Objective
from rdc_jax.pretrain.state import TrainState, Variables, Window
from rdc_jax.runtime.processes import Layout


class Batch(NamedTuple):
    """Images as they are stored, with their labels.

    Attributes:
      images: Decoded images, squeezed into squares.
      labels: Index of each one's class.
      aspects: Width over height of each one before it was squeezed.
    """

    images: UInt8[Array | np.ndarray, "b h w 3"]
    labels: Int[Array | np.ndarray, " b"]
    aspects: Float[Array | np.ndarray, " b"]


TrainStep = Callable[[PRNGKeyArray, TrainState, Batch], tuple[TrainState, Array]]


def make_train_step(
    objective: Objective,
    optimiser: optax.GradientTransformation,
    *,
    size: int,
    layout: Layout,
    ema: float = 0.0,
) -> TrainStep:
    """Compile one step at one size of crop.

    It is called from a Python loop: XLA on CPU runs convolutions inside ``lax.scan``
    several times slower (jax-ml/jax#12868). The state's memory is given up to the new
    state.

    Args:
      objective: Network and loss.
      optimiser: That changes the weights.
      size: Of the crops.
      layout: Where arrays live.
      ema: Decay of the averaged weights, if the state keeps them.

    Returns:
      A function of (key, state, batch): the new state, and the loss to wait for.
    """

    def train_step(
        key: PRNGKeyArray, state: TrainState, batch: Batch
    ) -> tuple[TrainState, Float[Array, ""]]:
        images = augment(key, state.step, batch, size)
        params, batch_stats = state.variables["params"], state.variables["batch_stats"]
        (loss, outcome), grads = jax.value_and_grad(objective.loss, has_aux=True)(
            params, batch_stats, images, batch.labels
        )
        updates, opt_state = optimiser.update(grads, state.opt_state, params)
        variables = {
            "params": optax.apply_updates(params, updates),
            "batch_stats": outcome.batch_stats,
        }
        average = state.average
        if average is not None:
            average = _average(average, variables, state.step, ema)
        numbers = (1, loss, outcome.accuracy, optax.tree.norm(grads))
        window = Window(*jax.tree.map(jnp.add, tuple(state.window), numbers))
        return TrainState(state.step + 1, variables, opt_state, average, window), loss

    return jax.jit(train_step, donate_argnums=1, out_shardings=layout.replicated)


def augment(
    key: PRNGKeyArray,
    step: Int[Array, ""],
    batch: Batch,
    size: int,
) -> Float[Array, "b {size} {size} 3"]:
    """Crop, jitter and mirror a batch.

    The key of an image is a function of the seed, the step and its place in the
    global batch: not of devices, processes or where the run was interrupted.

    Args:
      key: Of the run.
      step: Number of steps done.
      batch: Decoded images.
      size: Of the crops.

    Returns:
      Normalised images.
    """
    step_key = jax.random.fold_in(key, step)
    places_b = jnp.arange(len(batch.labels))
    keys_b = jax.vmap(lambda place: jax.random.fold_in(step_key, place))(places_b)
    return train_batch(keys_b, batch.images, size, aspect=batch.aspects)


def _average(
    average: Variables, variables: Variables, step: Int[Array, ""], decay: float
) -> Variables:
    """Move the average; the first steps count for more, as it starts at random."""
    rate = jnp.minimum(decay, (1.0 + step) / (10.0 + step))
    return jax.tree.map(lambda a, v: rate * a + (1 - rate) * v, average, variables)


def learning_rate_at(schedule: optax.Schedule, step: int) -> float:
    """Give the learning rate of a step (counted from 0) as a plain number."""
    return float(schedule(jnp.asarray(step)))


def readings(window: Window) -> dict[str, Any]:
    """Give a window's means as plain numbers; waits for the steps to end."""
    window = jax.device_get(window)
    steps = max(1, int(window.steps))
    return {
        "loss": float(window.loss) / steps,
        "accuracy": 100 * float(window.accuracy) / steps,
        "grad_norm": float(window.grad_norm) / steps,
    }
