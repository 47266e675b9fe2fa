"""The relation network of Sung et al. (2018), as the cross-domain codes have it."""

from typing import ClassVar, Literal

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.models.conv import Conv
from rdc_jax.models.cpu.pool import max_pool
from rdc_jax.models.heads.episode import Episode, Inputs, check_choices
from rdc_jax.models.heads.linear import Linear
from rdc_jax.models.heads.norm import Counts, EpisodeNorm


class Relation(nn.Module):
    """A score of each query's map beside the mean map of each class.

    Attributes:
      moments: ``batch``, over all pairs of the task, or ``running``, see
        ``EpisodeNorm``; there are no pairs of supports alone.
      hidden: Width of the linear layer before the score.
    """

    inputs: ClassVar[Inputs] = "maps"
    way: ClassVar[None] = None

    moments: str = "batch"
    hidden: int = 8

    def __post_init__(self) -> None:
        check_choices(self, moments=Literal["batch", "running"])
        super().__post_init__()

    @nn.compact
    def __call__(self, episode: Episode, *, train: bool = False) -> Float[Array, "q c"]:
        """Give the scores, see ``EpisodeHead``."""
        shots_c = episode.label.sum(axis=0)
        total_chwd = jnp.einsum("sc,shwd->chwd", episode.label, episode.support)
        mean_chwd = total_chwd / jnp.maximum(shots_c, 1)[:, None, None, None]
        pair_qc = episode.query_valid[:, None] & (shots_c > 0)[None, :]
        # A convolution of two maps side by side is the sum of one of each: so each map
        # goes through once, and not once a pair. A bias would be lost in the norm.
        d = mean_chwd.shape[-1]
        ours = Conv(d, 3, name="conv1_query")(episode.query)
        theirs = Conv(d, 3, name="conv1_class")(mean_chwd)
        x = (ours[:, None] + theirs[None]).reshape(-1, *ours.shape[1:])
        x = self._pooled(x, pair_qc, "norm1", train)
        x = Conv(d, 3, name="conv2")(x)
        x = self._pooled(x, pair_qc, "norm2", train)
        x = nn.relu(Linear(self.hidden, name="hidden")(x.reshape(len(x), -1)))
        return Linear(1, name="score")(x).reshape(pair_qc.shape)

    def _pooled(
        self, x_phwd: Float[Array, "p h w d"], pair_qc: Array, name: str, train: bool
    ) -> Float[Array, "p h2 w2 d"]:
        """Normalise, rectify, and pool what is larger than a pixel."""
        count = jnp.broadcast_to(pair_qc.reshape(1, -1, 1, 1), (1, *x_phwd.shape[:-1]))
        norm = EpisodeNorm(self.moments, name=name)
        x_phwd = nn.relu(norm(x_phwd[None], Counts(count, count), train=train)[0])
        # Of 84 pixels 3x3 are left, and 1x1 after the first pool.
        if min(x_phwd.shape[1:3]) < 2:
            return x_phwd
        return max_pool(x_phwd, size=2, stride=2)
