"""Relevance of node features for the answers of a graph network (LRP).

Layer-wise relevance propagation (Bach et al. 2015), as Sun et al., "Explanation-Guided
Training for Cross-Domain Few-Shot Classification", ICPR 2020, have it in their code: by
the epsilon rule through the linear maps, unchanged through norms and activations. The
weights of edges are constants.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Taken = Sequence[tuple[Float[Array, "g n _"], Float[Array, "g n n"]]]


def of_logits(
    logits_gnc: Float[Array, "g n c"], *, margin: float = 0.01
) -> Float[Array, "g n c"]:
    """Give what is explained: the log odds of each class, about 0 at chance."""
    share_gnc = jax.nn.softmax(logits_gnc)
    others = logits_gnc.shape[-1] - 1
    return jnp.log(others * (share_gnc + margin) / (1 + margin - share_gnc))


def of_nodes(
    taken: Taken,
    kernels: Sequence[Float[Array, "_ _"]],
    relevance_gnc: Float[Array, "g n c"],
    *,
    epsilon: float,
    whole: bool,
) -> Float[Array, "g n d"]:
    """Propagate the relevance of all logits back to what the first block took.

    Each block takes what the one before it took, and beside that what that one gave.

    Args:
      taken: Nodes and adjacency that each block took, see ``GNN.spread``.
      kernels: Of the blocks' linear maps.
      relevance_gnc: Of the last block's result.
      epsilon: Added to each sum, away from zero.
      whole: Whether what a block gave has the relevance that it has for all later
        blocks. Else it has that for the next one alone, as in the published code, and
        the sum of the relevance is not kept.
    """
    given, passed = relevance_gnc, jnp.zeros(())
    for i in reversed(range(len(taken))):
        own = _through_block(*taken[i], kernels[i], given, epsilon)
        every = own + passed
        width = taken[max(i - 1, 0)][0].shape[-1]
        given = (every if whole else own)[..., width:]
        passed = every[..., :width]
    return passed


def _through_block(
    x_gnd: Array, edge_gnn: Array, kernel: Array, relevance: Array, epsilon: float
) -> Array:
    """From the result of a graph convolution to its nodes."""

    def gathered(x_gnd: Array) -> Array:
        return jnp.concatenate([x_gnd, edge_gnn @ x_gnd], axis=-1)

    both = gathered(x_gnd)
    relevance = _through(lambda x: x @ kernel, both, relevance, epsilon)
    return _through(gathered, x_gnd, relevance, epsilon)


def _through(
    linear: Callable[[Array], Array], x: Array, relevance: Array, epsilon: float
) -> Array:
    """Share out the relevance of each sum among its terms, by their sizes."""
    z, transposed = jax.vjp(linear, x)
    (share,) = transposed(relevance / (z + jnp.where(z < 0, -epsilon, epsilon)))
    return x * share
