"""Losses that move a task's plain distances towards calibrated ones (Eq. 11-12)."""

from typing import Literal

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float

from rdc_jax.core.rows import compute_dtype

Scalar = float | Float[ArrayLike, ""]
Attention = Literal["both", "target", "original"]


def attention_mask(
    neighbours: Bool[ArrayLike, "n n"], alpha: Scalar = 0.5
) -> Float[Array, "n n"]:
    """Weights ``1 + alpha`` on neighbours, 1 elsewhere (Eq. 11).

    Example:
      >>> import jax.numpy as jnp
      >>> import rdc_jax
      >>> rdc_jax.attention_mask(jnp.eye(2, dtype=bool), alpha=0.5).tolist()
      [[1.5, 1.0], [1.0, 1.5]]
    """
    weight_nn = jnp.where(jnp.asarray(neighbours), 1 + jnp.asarray(alpha), 1)  # Eq. 11
    # A Python number for alpha makes the result weakly typed, and weak types take the
    # dtype of whatever they meet: the cast to its own dtype makes it an ordinary array.
    return weight_nn.astype(weight_nn.dtype)


def soft_distribution(
    distances: Float[Array, "n n"],
    tau: Scalar,
    *,
    pairs: Bool[Array, "n n"],
    sign: int = -1,
) -> Float[Array, "n n"]:
    """Log-probabilities of each row's neighbours: softmax over j of ±d(i, j)/tau.

    Args:
      distances: Distances, weighted or not.
      tau: Temperature.
      pairs: Pairs that count; each row needs one.
      sign: -1: near is likely; +1: as the paper prints it.

    Returns:
      Log-probabilities; -inf, without a gradient, at pairs that do not count.
    """
    # -inf before the softmax, not zero after it: the rest must still sum to one.
    logits_nn = jnp.where(pairs, sign * distances / tau, -jnp.inf)
    return jax.nn.log_softmax(logits_nn, axis=1)


def kl_loss(
    original: Float[ArrayLike, "n n"],
    target: Float[ArrayLike, "n n"],
    neighbours: Bool[ArrayLike, "n n"],
    alpha: Scalar = 0.5,
    tau: Scalar = 3.0,
    *,
    mask: Bool[ArrayLike, " n"] | None = None,
    sign: int = -1,
    include_self: bool = False,
    rows: Bool[ArrayLike, " n"] | None = None,
    attention: Attention = "both",
) -> Float[Array, ""]:
    """KL divergence of the original from the calibrated distances' distribution.

    ``tau² · mean over i of KL(p_target(i) ‖ p_original(i))`` (Eq. 12), both distance
    matrices weighted by the attention mask. Neither the target nor the mask carries a
    gradient. With ``sign=-1`` attention, which lengthens a neighbour's distance, lowers
    its probability; with the printed sign it raises it.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> import rdc_jax
      >>> features = jax.random.normal(jax.random.key(0), (20, 64))
      >>> out = rdc_jax.rdc(features[:5], jnp.arange(5), features[5:], num_classes=5)
      >>> bool(rdc_jax.kl_loss(out.original, out.distances, out.neighbours) > 0)
      True

    Args:
      original: D_o, the distances to be trained.
      target: D̂_com, the distances to be matched.
      neighbours: R̂ of the original space.
      alpha: Extra weight of neighbours; 0: no attention.
      tau: Temperature.
      mask: False on rows that are padding.
      sign: -1: near is likely; +1: as the paper prints it.
      include_self: Keep the pair (i, i) in the distributions.
      rows: True on the rows i of the mean; None: all of them.
      attention: Which distances the attention mask weighs.

    Returns:
      A scalar of the dtype of ``original``.
    """
    dtype = jnp.asarray(original).dtype
    original, target, weight = _weighted_inputs(original, target, neighbours, alpha)
    n = original.shape[0]
    real_n = jnp.ones(n, bool) if mask is None else jnp.asarray(mask)
    pairs = real_n[:, None] & real_n[None, :]
    if not include_self:
        pairs = pairs & ~jnp.eye(n, dtype=bool)
    # A row of padding has no pair. It gets itself, so that its softmax is defined, and
    # is left out of the mean.
    counted_n = pairs.any(axis=1)
    filled = jnp.where(counted_n[:, None], pairs, jnp.eye(n, dtype=bool))
    log_p, log_q = (
        soft_distribution(
            weight * x if attention in ("both", name) else x,
            tau,
            pairs=filled,
            sign=sign,
        )
        for name, x in (("target", target), ("original", original))
    )
    if rows is not None:
        counted_n = counted_n & jnp.asarray(rows)
    # Eq. 12: Σ_j p log(p / q), with p of the target. Pairs that do not count are -inf
    # in both, and the difference of two infinities is NaN: they are zeroed before it.
    gain = jnp.where(filled, log_p, 0) - jnp.where(filled, log_q, 0)
    terms = jnp.where(filled, jnp.exp(log_p) * gain, 0)
    kl_n = jnp.where(counted_n, terms.sum(axis=1), 0)
    count = jnp.maximum(counted_n.sum(), 1).astype(kl_n.dtype)
    # Gradients of softened distributions fall as 1/τ² (Hinton et al. 2015).
    loss = jnp.square(tau) * kl_n.sum() / count
    return loss.astype(dtype)


def mse_loss(
    original: Float[ArrayLike, "n n"],
    target: Float[ArrayLike, "n n"],
    neighbours: Bool[ArrayLike, "n n"],
    alpha: Scalar = 0.5,
    *,
    mask: Bool[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Mean squared difference of the weighted distances (the MSE loss of Figure 3).

    Example:
      >>> import jax.numpy as jnp
      >>> import rdc_jax
      >>> near, far = jnp.zeros((2, 2)), jnp.ones((2, 2))
      >>> float(rdc_jax.mse_loss(near, far, jnp.zeros((2, 2), bool)))
      1.0

    Args:
      original: D_o, the distances to be trained.
      target: D̂_com, the distances to be matched.
      neighbours: R̂ of the original space.
      alpha: Extra weight of neighbours; 0: none.
      mask: False on rows that are padding.

    Returns:
      A scalar of the dtype of ``original``.
    """
    dtype = jnp.asarray(original).dtype
    original, target, weight = _weighted_inputs(original, target, neighbours, alpha)
    real_n = jnp.ones(original.shape[0], bool) if mask is None else jnp.asarray(mask)
    pairs = real_n[:, None] & real_n[None, :]
    difference = jnp.where(pairs, weight * (original - target), 0)
    count = jnp.maximum(pairs.sum(), 1).astype(difference.dtype)
    return (jnp.square(difference).sum() / count).astype(dtype)


def _weighted_inputs(
    original: Float[ArrayLike, "n n"],
    target: Float[ArrayLike, "n n"],
    neighbours: Bool[ArrayLike, "n n"],
    alpha: Scalar,
) -> tuple[Float[Array, "n n"], Float[Array, "n n"], Float[Array, "n n"]]:
    """Inputs in at least float32; target and weights cut from the gradient."""
    compute = compute_dtype(original)
    weight = attention_mask(lax.stop_gradient(neighbours), alpha).astype(compute)
    target = lax.stop_gradient(jnp.asarray(target).astype(compute))
    return jnp.asarray(original).astype(compute), target, weight
