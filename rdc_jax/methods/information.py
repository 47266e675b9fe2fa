"""What the methods of the TIM family share: answers, entropies, descent."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.distances import safe_sqrt
from rdc_jax.core.loops import repeat
from rdc_jax.methods.prepared import PreparedTask, squared

_TINY = 1e-12  # Of the logarithm of no answer at all.


def log_answers(
    task: PreparedTask,
    feat_md: Float[Array, "m d"],
    mean_cd: Float[Array, "c d"],
    temperature: float,
) -> Float[Array, "m c"]:
    """Logarithms of ``softmax(-temperature/2 · d²)`` over the classes with supports."""
    logit_mc = -temperature / 2 * squared(feat_md, mean_cd)
    return jax.nn.log_softmax(task.possible(logit_mc), axis=1)


def entropy(answer_mc: Float[Array, "m c"], order: float = 1.0) -> Float[Array, " m"]:
    """Tsallis entropy of each row, Shannon's where the order is one.

    >>> entropy(jnp.array([[0.5, 0.5], [1.0, 0.0]]), order=2.0).tolist()
    [0.5, 0.0]
    """
    if order == 1:
        return -(answer_mc * jnp.log(answer_mc + _TINY)).sum(axis=-1)
    return (1 - (answer_mc**order).sum(axis=-1)) / (order - 1)


def information_loss(
    task: PreparedTask,
    log_sc: Float[Array, "s c"],
    log_qc: Float[Array, "q c"],
    *,
    weights: tuple[float, float, float],
    order: float = 1.0,
) -> Float[Array, ""]:
    """Cross-entropy, less the entropy of the mean answer, plus the answers' own.

    Args:
      task: Tells which rows count.
      log_sc: Logarithms of the supports' answers.
      log_qc: The same of the queries.
      weights: Of the three terms.
      order: Of the entropies.
    """
    fit, even, sure = weights
    counts_q1 = task.counts[:, None]
    total = jnp.maximum(task.counts.sum(), 1)
    answer_qc = jnp.exp(log_qc) * counts_q1
    cross = -(task.label * log_sc).sum() / jnp.maximum(task.shots.sum(), 1)
    mean_1c = answer_qc.sum(axis=0, keepdims=True) / total
    own = (entropy(answer_qc, order) * task.counts).sum() / total
    return fit * cross - even * entropy(mean_1c, order).sum() + sure * own


def descend(
    loss: Callable[[Array], Array], start: Array, *, steps: int, rate: float
) -> Array:
    """Minimise by so many steps of Adam (Kingma and Ba 2015)."""
    decay, decay_of_squares, tiny = 0.9, 0.999, 1e-8

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, mean, square, kept, kept_of_squares = state
        gradient = jax.grad(loss)(x)
        mean = decay * mean + (1 - decay) * gradient
        square = decay_of_squares * square + (1 - decay_of_squares) * gradient**2
        kept, kept_of_squares = kept * decay, kept_of_squares * decay_of_squares
        size = safe_sqrt(square / (1 - kept_of_squares)) + tiny
        move = mean / (1 - kept) / size
        return x - rate * move, mean, square, kept, kept_of_squares

    zero, one = jnp.zeros_like(start), jnp.ones((), start.dtype)
    state: tuple[Array, ...] = (start, zero, zero, one, one)
    return repeat(step, steps, state)[0]
