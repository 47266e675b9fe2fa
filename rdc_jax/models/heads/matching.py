"""Matching networks (Vinyals et al. 2016) with embeddings in full context."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import lax
from jaxtyping import Array, Bool, Float

from rdc_jax.core.rows import l2_normalize, row_hashes
from rdc_jax.models.heads.episode import Episode, Inputs, check_choices

Context = Literal["lstm", "published", "none"]
State = tuple[Array, Array]  # The output, and the memory.

_NEVER = -1e8
_LEAST = 1e-6  # Added to probabilities before the logarithm.


class Cell(NamedTuple):
    """Weights of ``torch.nn.LSTMCell``: its gates in its order, both its biases.

    Attributes:
      kernel: ``[i + d, 4 d]``, of the input and of the state.
      bias: ``[2, 4 d]``.
    """

    kernel: Float[Array, "j g"]
    bias: Float[Array, "2 g"]

    def __call__(
        self, x_bi: Float[Array, "b i"], state: State, kept: Bool[Array, ""]
    ) -> State:
        """Give the next output and memory; the old ones at padding."""
        sums = jnp.concatenate([x_bi, state[0]], axis=1) @ self.kernel
        gates = jnp.split(sums + self.bias.sum(axis=0), 4, axis=1)
        enter, forget, leave = (nn.sigmoid(gates[i]) for i in (0, 1, 3))
        memory = forget * state[1] + enter * jnp.tanh(gates[2])
        output = leave * jnp.tanh(memory)
        return jnp.where(kept, output, state[0]), jnp.where(kept, memory, state[1])


class Matching(nn.Module):
    """Votes of the supports, by the cosines of embeddings.

    Attributes:
      context: How supports and queries see the supports. ``lstm``: as the paper says,
        supports by a recurrent network in both directions, queries by attention.
        ``published``: as the cross-domain code computes the backward direction, from
        the first to the last and then down, each state added to the support of its
        turn. ``none``: not at all. Supports go class by class, and within a class in
        an order by what they hold, so that the order they come in does not count.
      scale: Of the cosines.
    """

    inputs: ClassVar[Inputs] = "features"
    way: ClassVar[None] = None

    context: str = "lstm"
    scale: float = 100.0

    def __post_init__(self) -> None:
        check_choices(self, context=Context)
        super().__post_init__()

    @nn.compact
    def __call__(self, episode: Episode, *, train: bool = False) -> Float[Array, "q c"]:
        """Give logarithms of probabilities, see ``EpisodeHead``."""
        del train
        (support_sd, label_sc, valid_s), query_qd = _in_order(episode), episode.query
        if self.context != "none":
            support_sd = self._supports(support_sd, valid_s)
            query_qd = self._queries(query_qd, support_sd, valid_s)
        cosine_qs = l2_normalize(query_qd) @ l2_normalize(support_sd).T
        score_qs = jnp.where(valid_s, self.scale * nn.relu(cosine_qs), _NEVER)
        return jnp.log(nn.softmax(score_qs, axis=1) @ label_sc + _LEAST)

    def _supports(
        self, support_sd: Float[Array, "s d"], valid_s: Bool[Array, " s"]
    ) -> Float[Array, "s d"]:
        """Supports with the states of both directions added; one cell for both."""
        s, d = support_sd.shape
        cell = self._cell("support", d, d)
        start = jnp.zeros((1, d)), jnp.zeros((1, d))

        def step(state: State, turn: tuple[Array, Array]) -> tuple[State, Array]:
            state = cell(turn[0][None], state, turn[1])
            return state, state[0][0]

        def along(order_s: Array) -> Array:
            return lax.scan(step, start, (support_sd[order_s], valid_s[order_s]))[1]

        up_s = jnp.arange(s)
        if self.context == "published":
            last = valid_s.sum() - 1  # Padding is behind it.
            down_s = jnp.where((up_s > 0) & (up_s <= last), last + 1 - up_s, up_s)
            backward_sd = along(down_s)
        else:
            backward_sd = along(up_s[::-1])[::-1]
        both_sd = along(up_s) + backward_sd
        return support_sd + jnp.where(valid_s[:, None], both_sd, 0)

    def _queries(
        self,
        query_qd: Float[Array, "q d"],
        support_sd: Float[Array, "s d"],
        valid_s: Bool[Array, " s"],
    ) -> Float[Array, "q d"]:
        """Queries after as many steps of attention as there are supports."""
        d = query_qd.shape[1]
        cell = self._cell("query", 2 * d, d)

        def step(state: State, kept: Array) -> tuple[State, None]:
            score_qs = jnp.where(valid_s, state[0] @ support_sd.T, _NEVER)
            read_qd = nn.softmax(score_qs, axis=1) @ support_sd
            output, memory = cell(jnp.concatenate([query_qd, read_qd], 1), state, kept)
            return (output + jnp.where(kept, query_qd, 0), memory), None

        start = query_qd, jnp.zeros_like(query_qd)
        return lax.scan(step, start, valid_s)[0][0]

    def _cell(self, name: str, inputs: int, features: int) -> Cell:
        """Weights as torch draws them, by the width of the state."""
        bound = features**-0.5

        def draw(key: jax.Array, shape: tuple[int, ...]) -> Array:
            return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

        return Cell(
            self.param(f"{name}_kernel", draw, (inputs + features, 4 * features)),
            self.param(f"{name}_bias", draw, (2, 4 * features)),
        )


def _in_order(episode: Episode) -> tuple[Array, Array, Array]:
    """Supports class by class, by what they hold within one; padding at the end."""
    label_s = episode.label.argmax(axis=1)
    hashes = row_hashes(lax.stop_gradient(episode.support))
    order_s = jnp.lexsort((*hashes, label_s, ~episode.support_valid))
    arrays = (episode.support, episode.label, episode.support_valid)
    support_sd, label_sc, valid_s = (x_s[order_s] for x_s in arrays)
    return support_sd, label_sc, valid_s
