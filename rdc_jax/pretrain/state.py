"""Everything that a step of training changes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

Variables = dict[str, Any]


class Window(NamedTuple):
    """Sums over the steps since the last line of the log.

    They are part of the state, so that a resumed run logs what an uninterrupted one
    logs, and no step has to wait for its numbers.

    Attributes:
      steps: Number of steps.
      loss: Sum of their losses.
      accuracy: Sum of their accuracies on the augmented batch.
      grad_norm: Sum of the gradient's norms.
    """

    steps: Int[Array, ""]
    loss: Float[Array, ""]
    accuracy: Float[Array, ""]
    grad_norm: Float[Array, ""]


class TrainState(NamedTuple):
    """The state of a run.

    Attributes:
      step: Number of steps done.
      variables: ``params`` and ``batch_stats`` of the network.
      opt_state: Of the optimiser.
      average: Exponential moving average of ``variables``, or None.
      window: Sums for the log.
    """

    step: Int[Array, ""]
    variables: Variables
    opt_state: Any
    average: Variables | None
    window: Window


def empty_window() -> Window:
    """Make a window of no steps."""
    # An array of its own for each, because a step gives their memory up.
    sums = (jnp.zeros((), jnp.float32) for _ in range(3))
    return Window(jnp.zeros((), jnp.int32), *sums)


def create_state(
    variables: Variables, optimiser: optax.GradientTransformation, *, average: bool
) -> TrainState:
    """Make the state before the first step.

    Args:
      variables: Of the network.
      optimiser: That will change them.
      average: Whether to keep an average of them.

    Returns:
      The state.
    """
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        variables=variables,
        opt_state=optimiser.init(variables["params"]),
        average=jax.tree.map(jnp.copy, variables) if average else None,
        window=empty_window(),
    )


def evaluated(state: TrainState) -> Variables:
    """Give the variables that are validated and published: the average, if kept."""
    return state.variables if state.average is None else state.average


def split(state: TrainState) -> tuple[Variables, dict[str, Any]]:
    """Part the published weights from what only a resumed run needs.

    Args:
      state: Of the run, or an abstract one.

    Returns:
      The weights and the rest; ``join`` puts them together.
    """
    rest = {
        "step": state.step,
        "opt_state": state.opt_state,
        "window": state.window._asdict(),
    }
    if state.average is not None:
        rest["variables"] = state.variables
    return evaluated(state), rest


def join(weights: Variables, rest: dict[str, Any]) -> TrainState:
    """Undo ``split``."""
    averaged = "variables" in rest
    return TrainState(
        step=rest["step"],
        variables=rest["variables"] if averaged else weights,
        opt_state=rest["opt_state"],
        average=weights if averaged else None,
        window=Window(**rest["window"]),
    )
