"""Bias diminishing and cosine-similarity prototypes (Liu et al. 2020)."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.rows import l2_normalize
from rdc_jax.methods.base import register
from rdc_jax.methods.prepared import PreparedMethod, PreparedTask, inner


@register("bd_cspn")
@dataclasses.dataclass(frozen=True, kw_only=True)
class BDCSPN(PreparedMethod):
    """One pass of prototypes that take in the queries they are nearest to.

    The queries are first moved so that their mean is the supports'. Each then joins the
    class of the most similar prototype, and a class's rows are averaged with weights
    ``softmax(temperature · cosine)``.

    Attributes:
      temperature: Of the weights.
    """

    title = "BD-CSPN"
    transductive = True

    temperature: float = 10.0

    def distances(self, task: PreparedTask) -> Float[Array, "q c"]:
        """One minus the cosine to the rectified prototypes."""
        count_s1 = task.label.sum(axis=1)[:, None]
        count_q1 = task.counts[:, None]
        shift_1d = _mean(task.support, count_s1) - _mean(task.query, count_q1)
        task = task._replace(query=(task.query + shift_1d) * count_q1)
        rectified_cd = rectified_prototypes(task, self.temperature)
        return 1 - inner(l2_normalize(task.query), rectified_cd)


def rectified_prototypes(task: PreparedTask, temperature: float) -> Float[Array, "c d"]:
    """Unit prototypes, averaged over supports and the queries nearest to them."""
    feat_nd = l2_normalize(task.rows)
    cosine_nc = inner(feat_nd, l2_normalize(task.prototypes))
    nearest_n = task.possible(cosine_nc).argmax(axis=1)
    joined_nc = jax.nn.one_hot(nearest_n, cosine_nc.shape[1], dtype=feat_nd.dtype)
    pad = (task.support.shape[0], 0)
    member_nc = task.labels + joined_nc * jnp.pad(task.counts, pad)[:, None]
    # |cosine| is at most one: no overflow.
    weight_nc = member_nc * jnp.exp(temperature * (cosine_nc - 1))
    total_cd = inner(weight_nc.T, feat_nd.T)
    return l2_normalize(total_cd)


def _mean(feat_md: Array, count_m1: Array) -> Float[Array, "1 d"]:
    total = jnp.maximum(count_m1.sum(), 1)
    return (feat_md * count_m1).sum(axis=0, keepdims=True) / total
