"""Transductive propagation (Liu et al. 2019), as the cross-domain codes have it."""

from typing import ClassVar

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.core.propagation import nearest_only, propagate
from rdc_jax.models.conv import Conv
from rdc_jax.models.cpu.pool import max_pool
from rdc_jax.models.heads.episode import Episode, Inputs, check_choices
from rdc_jax.models.heads.linear import Linear, torch_uniform
from rdc_jax.models.heads.norm import Counts, EpisodeNorm, Moments

# Lengths below this are taken for it: features are divided by them.
_SHORTEST = 1e-3


class LengthScale(nn.Module):
    """One number for each image, by which its features are divided.

    Attributes:
      moments: Of its norms, see ``EpisodeNorm``.
      hidden: Width of the linear layer before the last.
    """

    moments: str
    hidden: int = 18

    @nn.compact
    def __call__(
        self, maps_nhwd: Float[Array, "n h w d"], counts: Counts, *, train: bool
    ) -> Float[Array, " n"]:
        """Look at the maps."""
        x = maps_nhwd
        for i, width in enumerate((x.shape[-1], 1), 1):
            x = Conv(width, 3, kernel_init=torch_uniform, name=f"conv{i}")(x)
            spread = [
                jnp.broadcast_to(x_n[..., None, None], (1, *x.shape[:3]))
                for x_n in counts
            ]
            norm = EpisodeNorm(self.moments, name=f"norm{i}")
            x = norm(x[None], Counts(*spread), train=train)[0]
            x = max_pool(nn.relu(x), size=2, stride=2, padding=1)
        x = nn.relu(Linear(self.hidden, name="hidden")(x.reshape(len(x), -1)))
        return Linear(1, name="length")(x)[:, 0]


class TPN(nn.Module):
    """Labels propagated over a graph whose length scales are learned.

    Attributes:
      k: Neighbours that each row keeps, itself among them.
      alpha: Share that a row takes from its neighbours.
      moments: Of the network of length scales, see ``EpisodeNorm``.
      uniform: Whether queries start with all classes alike, as in the cross-domain
        code, or with none, as in the original one. All answers are the same.
    """

    inputs: ClassVar[Inputs] = "maps"
    way: ClassVar[None] = None

    k: int = 20
    alpha: float = 0.99
    moments: str = "running"
    uniform: bool = True

    def __post_init__(self) -> None:
        check_choices(self, moments=Moments)
        super().__post_init__()

    @nn.compact
    def __call__(self, episode: Episode, *, train: bool = False) -> Float[Array, "q c"]:
        """Give what queries receive of each class, see ``EpisodeHead``."""
        valid_n, s = episode.valid, len(episode.support)
        is_support_n = jnp.arange(len(valid_n)) < s
        counts = Counts(valid_n[None], (valid_n & is_support_n)[None])
        scale = LengthScale(self.moments, name="length_scale")
        length_n = scale(episode.rows, counts, train=train)
        longer_n = jnp.where(length_n < 0, -_SHORTEST, _SHORTEST)
        length_n = jnp.where(jnp.abs(length_n) < _SHORTEST, longer_n, length_n)
        feat_nd = episode.rows.mean((1, 2)) / length_n[:, None]
        start_qc = jnp.zeros((len(episode.query), episode.label.shape[1]))
        if self.uniform:
            start_qc += episode.query_valid[:, None] / episode.label.shape[1]
        start_nc = jnp.concatenate([episode.label, start_qc])
        graph_nn = neighbour_graph(feat_nd, valid_n, self.k)
        return propagate(graph_nn, start_nc, self.alpha)[s:]


def neighbour_graph(
    feat_nd: Float[Array, "n d"], valid_n: Array, k: int
) -> Float[Array, "n n"]:
    """Weights ``exp(-mean (a - b)² / 2)`` where either row is among the other's k."""
    square_nn = jnp.square(feat_nd[:, None] - feat_nd[None, :]).mean(axis=-1)
    pair_nn = valid_n[:, None] & valid_n[None, :]
    weight_nn = jnp.where(pair_nn, jnp.exp(-0.5 * square_nn), 0)
    kept_nn = nearest_only(weight_nn, k) > 0
    return jnp.where(kept_nn | kept_nn.T, weight_nn, 0)
