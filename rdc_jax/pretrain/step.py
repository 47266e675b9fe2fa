"""The state of a run, and the compiled step that moves it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, UInt8

from rdc_jax.data.transforms import train_batch
from rdc_jax.models.model import Variables
from rdc_jax.pretrain.objectives import Batch, Embedded, Objective, gradients
from rdc_jax.runtime.processes import Layout

# Folded into a step's key for its loss. Images fold in their place in the batch, which
# is never this number.
_LOSS = 2**32 - 1

Sums = dict[str, Array]
TrainStep = Callable[..., tuple["TrainState", Array]]


class TrainState(NamedTuple):
    """All that a step changes.

    Attributes:
      step: Number of steps done.
      variables: ``params`` and ``batch_stats`` of the model.
      opt_state: State of the optimiser.
      average: Exponential moving average of ``variables``, or None.
      sums: Of the metrics since the last line of the log, and of their ``steps``. As
        part of the state they let a resumed run log what an uninterrupted one logs, and
        no step waits for its numbers.
    """

    step: Int[Array, ""]
    variables: Variables
    opt_state: Any
    average: Variables | None
    sums: Sums

    @property
    def eval_variables(self) -> Variables:
        """The variables to validate and to publish: the average, if there is one."""
        return self.variables if self.average is None else self.average


def create_state(
    objective: Objective,
    optimiser: optax.GradientTransformation,
    variables: Variables,
    *,
    average: bool,
) -> TrainState:
    """Make the state before the first step."""
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        variables=variables,
        opt_state=optimiser.init(variables["params"]),
        average=jax.tree.map(jnp.copy, variables) if average else None,
        sums=zero_sums(objective.metrics),
    )


def zero_sums(metrics: tuple[str, ...]) -> Sums:
    """Make the sums over no steps."""
    # A new array for each: the step donates them, and no buffer can be donated twice.
    names = ("loss", "grad_norm", *metrics)
    return {"steps": jnp.zeros((), jnp.int32)} | {n: jnp.zeros(()) for n in names}


def split(state: TrainState) -> tuple[Variables, dict[str, Any]]:
    """Split a state into the published weights and what only a resumed run needs.

    ``join`` undoes it. Checkpoints have the two under these names, so that older ones
    can be resumed.
    """
    rest = {"step": state.step, "opt_state": state.opt_state, "window": state.sums}
    if state.average is not None:
        rest["variables"] = state.variables
    return state.eval_variables, rest


def join(weights: Variables, rest: Mapping[str, Any]) -> TrainState:
    """Undo ``split``."""
    averaged = "variables" in rest
    return TrainState(
        step=rest["step"],
        variables=rest["variables"] if averaged else weights,
        opt_state=rest["opt_state"],
        average=weights if averaged else None,
        sums=rest["window"],
    )


def make_train_step(
    objective: Objective,
    optimiser: optax.GradientTransformation,
    size: int,
    *,
    layout: Layout,
    ema: float = 0.0,
    embedded: bool = False,
) -> TrainStep:
    """Compile one step at one size of crop.

    It is called from a Python loop: XLA on CPU runs convolutions inside ``lax.scan``
    several times slower (jax-ml/jax#12868).

    Args:
      objective: Gives the loss.
      optimiser: Turns gradients into updates.
      size: Edge of the crops.
      layout: The state is replicated, the batch sharded.
      ema: Decay of the average, if the state has one.
      embedded: Stored are not images but what the network makes of versions of them.

    Returns:
      A function of the run's key, the state, and stored images with ``label`` and
      ``aspect``. It gives the new state, into whose memory the old one is donated, and
      the loss, to wait for.
    """

    def train_step(
        key: PRNGKeyArray, state: TrainState, stored: Mapping[str, Array]
    ) -> tuple[TrainState, Float[Array, ""]]:
        # A function of the seed and the step alone, so a resumed run draws the same.
        key = jax.random.fold_in(key, state.step)
        batch: Batch
        if embedded:
            batch = Embedded(one_version(key, stored["image"]), stored["label"])
        else:
            images = augment(key, stored["image"], stored["aspect"], size)
            batch = Batch(images, stored["label"])
        old = state.variables
        loss_key = jax.random.fold_in(key, _LOSS)
        (loss, aux), grads = gradients(objective, old, batch, loss_key, state.step)
        updates, opt_state = optimiser.update(grads, state.opt_state, old["params"])
        params = optax.apply_updates(old["params"], updates)
        variables = old | {"params": params}
        if "batch_stats" in old:  # Not all networks have batch norm.
            variables |= {"batch_stats": aux.batch_stats}
        average = state.average
        if average is not None:
            # The first steps count for more: the average starts at random weights.
            rate = jnp.minimum(ema, (1.0 + state.step) / (10.0 + state.step))
            average = jax.tree.map(
                lambda a, v: rate * a + (1 - rate) * v, average, variables
            )
        grad_norm = optax.tree.norm(grads)
        metrics = {"steps": 1, "loss": loss, "grad_norm": grad_norm, **aux.metrics}
        sums = jax.tree.map(jnp.add, state.sums, metrics)
        return TrainState(state.step + 1, variables, opt_state, average, sums), loss

    # Each device holds the whole state: BatchNorm and gradients are the global batch's.
    return jax.jit(train_step, donate_argnums=1, out_shardings=layout.replicated)


def augment(
    key: PRNGKeyArray,
    images: UInt8[ArrayLike, "b h w 3"],
    aspects: Float[ArrayLike, " b"],
    size: int,
) -> Float[Array, "b {size} {size} 3"]:
    """Crop, jitter, mirror and normalise a batch.

    An image's own key depends on its place in the global batch, not on the device or
    process that has it. Images are stored squeezed into squares; ``aspects`` are their
    widths over heights before that.
    """
    places_b = jnp.arange(jnp.shape(images)[0])
    keys_b = jax.vmap(lambda place: jax.random.fold_in(key, place))(places_b)
    return train_batch(keys_b, images, size, aspect=aspects)


def one_version(
    key: PRNGKeyArray, rows_bv: Float[ArrayLike, "b v ..."]
) -> Float[Array, "b ..."]:
    """Draw one of the versions of each image."""
    rows_bv = jnp.asarray(rows_bv)
    b, v = rows_bv.shape[:2]
    return rows_bv[jnp.arange(b), jax.random.randint(key, (b,), 0, v)]


def mean_metrics(sums: Sums) -> dict[str, float]:
    """Give the means as plain numbers, the accuracy in percent; waits for the steps."""
    values = {name: float(value) for name, value in jax.device_get(sums).items()}
    steps = max(1, values.pop("steps"))
    scales = {"accuracy": 100}
    means = {n: scales.get(n, 1) * value / steps for n, value in values.items()}
    return {"loss": means["loss"], **means}
