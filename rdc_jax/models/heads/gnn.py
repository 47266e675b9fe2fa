"""The graph network of Garcia and Bruna (2018), as the cross-domain codes have it."""

from typing import ClassVar, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from rdc_jax.core.rows import row_hashes
from rdc_jax.models.heads.episode import Episode, Inputs, check_choices
from rdc_jax.models.heads.linear import Linear
from rdc_jax.models.heads.norm import Counts, EpisodeNorm, Moments
from rdc_jax.runtime.errors import UserError

Layout = Literal["one", "shuffled", "balanced"]

_NEVER = -1e8  # Added to the score of a pair that is no edge.
_SLOPE = 0.01  # Of the leaky ReLU.


class Graphs(NamedTuple):
    """The graphs of a task: g of n nodes, all supports first, then some queries.

    Attributes:
      node: ``[g, n, f]``, projected features.
      label: ``[g, n, c]``, one-hot for supports, zero for queries.
      valid: ``[g, n]``, False on padding.
      slot: ``[q]``, where each query is among all queries of all graphs.
      num_supports: The first nodes of each graph.
    """

    node: Float[Array, "g n f"]
    label: Float[Array, "g n c"]
    valid: Bool[Array, "g n"]
    slot: Int[Array, " q"]
    num_supports: int

    @property
    def counts(self) -> Counts:
        """Which nodes count in the moments of a norm."""
        is_support_n = jnp.arange(self.valid.shape[1]) < self.num_supports
        return Counts(self.valid, self.valid & is_support_n)

    def of_queries(self, x_gnc: Float[Array, "g n c"]) -> Float[Array, "q c"]:
        """Rows of the query nodes, in the order of the queries; NaN without a node."""
        rows = x_gnc[:, self.num_supports :].reshape(-1, x_gnc.shape[-1])
        return rows.at[self.slot].get(mode="fill", fill_value=jnp.nan)


class Edges(nn.Module):
    """Weights of edges, from the absolute differences of nodes.

    Attributes:
      width: Of the first two layers; the next two have half.
      moments: See ``EpisodeNorm``.
    """

    width: int
    moments: str

    @nn.compact
    def __call__(
        self, x_gnd: Float[Array, "g n d"], graphs: Graphs, *, train: bool
    ) -> Float[Array, "g n n"]:
        """Give the adjacency: each row is a softmax over the other nodes."""
        n = x_gnd.shape[1]
        # |a - b| is |b - a|: each pair is computed once, and counts twice.
        first_p, second_p = np.triu_indices(n)
        times_p = jnp.asarray(np.where(first_p == second_p, 1, 2), x_gnd.dtype)
        one_hot_nn = np.eye(n, dtype=np.float32)
        # A product, for the gradient of a gather would scatter.
        pick_pn = jnp.asarray(one_hot_nn[first_p] - one_hot_nn[second_p], x_gnd.dtype)
        h = jnp.abs(
            jnp.einsum("pn,gnd->gpd", pick_pn, x_gnd, precision=lax.Precision.HIGHEST)
        )
        both = [x[:, first_p] & x[:, second_p] for x in graphs.counts]
        counts = Counts(*(times_p * x_gp for x_gp in both))
        widths = (self.width, self.width, self.width // 2, self.width // 2)
        for i, width in enumerate(widths, 1):
            # What a bias adds to all rows alike, the norm takes away.
            h = Linear(width, use_bias=False, name=f"conv{i}")(h)
            norm = EpisodeNorm(self.moments, name=f"norm{i}")
            h = nn.leaky_relu(norm(h, counts, train=train), _SLOPE)
        # As the softmax does here.
        score_gp = Linear(1, use_bias=False, name="score")(h)[..., 0]
        pair_nn = np.zeros((n, n), np.int32)
        pair_nn[first_p, second_p] = np.arange(len(first_p))
        pair_nn = np.maximum(pair_nn, pair_nn.T)
        edge_gnn = graphs.valid[:, None, :] & ~np.eye(n, dtype=bool)
        score_gnn = score_gp[:, pair_nn] + jnp.where(edge_gnn, 0, _NEVER)
        return jnp.where(edge_gnn, nn.softmax(score_gnn, axis=-1), 0)


class GNN(nn.Module):
    """Labels spread over graphs of all supports and some queries.

    Attributes:
      way: Classes of a task; the widths depend on it.
      layout: Which queries share a graph. ``one``: none. ``shuffled``: as many as there
        are classes, at random. ``balanced``: one of each class, as in the published
        code; this uses the labels of the queries, at test too.
      moments: See ``EpisodeNorm``.
      width: Columns of the projected features.
      growth: Features that each block adds to a node.
      edge_width: See ``Edges``.
    """

    inputs: ClassVar[Inputs] = "features"

    way: int = 5
    layout: str = "one"
    moments: str = "batch"
    width: int = 128
    growth: int = 48
    edge_width: int = 192

    def __post_init__(self) -> None:
        check_choices(self, layout=Layout, moments=Moments)
        super().__post_init__()

    def setup(self) -> None:
        """Make the modules."""
        self.project = Linear(self.width, use_bias=False)
        self.project_norm = EpisodeNorm(self.moments)
        self.edges = [Edges(self.edge_width, self.moments) for _ in range(3)]
        self.convs = [
            Linear(self.growth, use_bias=False),
            Linear(self.growth, use_bias=False),
            Linear(self.way),
        ]
        self.norms = [EpisodeNorm(self.moments) for _ in range(2)]

    def __call__(self, episode: Episode, *, train: bool = False) -> Float[Array, "q c"]:
        """Give the logits of the queries, see ``EpisodeHead``."""
        graphs = self.graphs(episode, train=train)
        logits_gnc, _ = self.spread(graphs, train=train)
        return graphs.of_queries(logits_gnc)

    def graphs(self, episode: Episode, *, train: bool = False) -> Graphs:
        """Project the features, and lay them out in graphs."""
        valid_n, s = episode.valid, len(episode.support)
        is_support_n = jnp.arange(len(valid_n)) < s
        counts = Counts(valid_n[None], (valid_n & is_support_n)[None])
        z_nf = self.project(episode.rows)
        z_nf = self.project_norm(z_nf[None], counts, train=train)[0]
        slot_q, (g, m) = self._slots(episode)
        query_m = (
            jnp.full(g * m, len(slot_q))
            .at[slot_q]
            .set(jnp.arange(len(slot_q)), mode="drop")
        )
        node_gmf, valid_gm = (
            x_q.at[query_m].get(mode="fill", fill_value=0).reshape(g, m, *x_q.shape[1:])
            for x_q in (z_nf[s:], episode.query_valid)
        )

        def joined(support: Array, query: Array) -> Array:
            shape = (g, *support.shape)
            return jnp.concatenate([jnp.broadcast_to(support, shape), query], axis=1)

        # The supports of a graph without queries must not count in any moment.
        valid_gn = joined(episode.support_valid, valid_gm)
        return Graphs(
            joined(z_nf[:s], node_gmf),
            joined(episode.label, jnp.zeros((g, m, self.way), z_nf.dtype)),
            valid_gn & valid_gm.any(axis=1, keepdims=True),
            slot_q,
            s,
        )

    def spread(
        self, graphs: Graphs, *, train: bool = False
    ) -> tuple[Float[Array, "g n c"], list[tuple[Array, Array]]]:
        """Run the blocks.

        Returns:
          Logits of all nodes; and what each block took, its nodes and its adjacency.
        """
        x_gnd = jnp.concatenate([graphs.node, graphs.label], axis=-1)
        taken = []
        for i, (edges, conv) in enumerate(zip(self.edges, self.convs, strict=True)):
            edge_gnn = edges(x_gnd, graphs, train=train)
            taken.append((x_gnd, edge_gnn))
            y_gnd = conv(jnp.concatenate([x_gnd, edge_gnn @ x_gnd], axis=-1))
            if i < len(self.norms):
                y_gnd = self.norms[i](y_gnd, graphs.counts, train=train)
                y_gnd = nn.leaky_relu(y_gnd, _SLOPE)
                x_gnd = jnp.concatenate([x_gnd, y_gnd], axis=-1)
        return y_gnd, taken

    def _slots(self, episode: Episode) -> tuple[Int[Array, " q"], tuple[int, int]]:
        """The slot of each query; graphs, and slots in each."""
        q = len(episode.query)
        if self.layout == "one":
            return jnp.arange(q), (q, 1)
        if self.layout == "shuffled":
            # By what the rows hold: the order that they come in must not count.
            order_q = jnp.lexsort((*row_hashes(episode.query), ~episode.query_valid))
            return jnp.argsort(order_q), (-(-q // self.way), self.way)
        if episode.query_labels is None:
            raise UserError("the balanced layout needs the labels of the queries")
        labels_q = episode.query_labels
        known_q = episode.query_valid & (labels_q >= 0) & (labels_q < self.way)
        same_qq = (labels_q[:, None] == labels_q[None, :]) & known_q[None, :]
        earlier_q = jnp.tril(same_qq, -1).sum(axis=1)
        # Queries beyond the last graph, or of no class, have no slot.
        slot_q = jnp.where(known_q, earlier_q * self.way + labels_q, q * self.way)
        return slot_q, (-(-q // self.way), self.way)
