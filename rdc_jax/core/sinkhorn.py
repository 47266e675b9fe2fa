"""Entropic optimal transport by Sinkhorn's scaling, in the log domain."""

import jax.numpy as jnp
from jax import lax
from jax.nn import logsumexp
from jaxtyping import Array, Float

_NOTHING = -1e30  # Of the log of no mass: finite, so that differences stay numbers.


def sinkhorn(
    cost_nm: Float[Array, "n m"],
    mass_n: Float[Array, " n"],
    mass_m: Float[Array, " m"],
    *,
    epsilon: float,
    steps: int,
) -> Float[Array, "n m"]:
    """Plan of least cost, less ``epsilon`` times its entropy, between two masses.

    The number of steps is fixed, so that under ``vmap`` no task waits for another.
    Rows and columns without mass take no part: padding is inert. The last half step
    is over the columns, whose sums are exact; the rows' are as far as it converged.

    Example:
      >>> import jax.numpy as jnp
      >>> from rdc_jax.core.sinkhorn import sinkhorn
      >>> half = jnp.array([0.5, 0.5])
      >>> plan = sinkhorn(1 - jnp.eye(2), half, half, epsilon=0.01, steps=5)
      >>> plan.round(3).tolist()
      [[0.5, 0.0], [0.0, 0.5]]

    Args:
      cost_nm: Of moving a unit from a row to a column.
      mass_n: Of the rows.
      mass_m: Of the columns, of the same sum.
      epsilon: Weight of the entropy; small ones need more steps.
      steps: Pairs of scalings, of the rows and of the columns.

    Returns:
      ``[n, m]``, not negative.
    """
    # The plan is diag(a) exp(-cost/ε) diag(b). Each half step sets a, then b, so that
    # the rows, then the columns, have their masses. In logarithms, because exp(-cost/ε)
    # underflows float32 for the small ε that make a plan sharp.
    log_kernel_nm = -cost_nm / jnp.asarray(epsilon, cost_nm.dtype)
    log_mass_n, log_mass_m = _log(mass_n), _log(mass_m)

    def scale(logs: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        log_m = logs[1]
        log_n = log_mass_n - logsumexp(log_kernel_nm + log_m[None, :], axis=1)
        log_n = jnp.where(mass_n > 0, log_n, _NOTHING)
        log_m = log_mass_m - logsumexp(log_kernel_nm + log_n[:, None], axis=0)
        return (log_n, jnp.where(mass_m > 0, log_m, _NOTHING)), None

    start = (jnp.zeros_like(log_mass_n), jnp.where(mass_m > 0, 0, _NOTHING))
    start = (start[0], start[1].astype(cost_nm.dtype))
    (log_n, log_m), _ = lax.scan(scale, start, length=steps)
    takes_part_nm = (mass_n > 0)[:, None] & (mass_m > 0)[None, :]
    log_plan_nm = log_kernel_nm + log_n[:, None] + log_m[None, :]
    return jnp.where(
        takes_part_nm, jnp.exp(jnp.where(takes_part_nm, log_plan_nm, 0)), 0
    )


def _log(mass: Float[Array, " n"]) -> Float[Array, " n"]:
    positive = mass > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, mass, 1)), _NOTHING)
