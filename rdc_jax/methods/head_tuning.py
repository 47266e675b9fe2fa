"""A head and its network, fitted to each task by tasks made of its supports."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.data.transforms import pseudo_set, test_batch, versions_of
from rdc_jax.methods.adapt import Adaptation, PyTree, test_images
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.heads import check_way, distances_of, episode_of, inputs_of
from rdc_jax.models.heads.episode import make_episode
from rdc_jax.models.model import Model, Variables
from rdc_jax.runtime.config_values import at_least
from rdc_jax.runtime.errors import UserError

SPLITS = ("originals", "published", "shuffled")


class Tuned(NamedTuple):
    """A model on its way, and the state of its optimiser."""

    model: Model
    optimiser: PyTree


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeadTuning(Adaptation):
    """Each step is on a task of random versions of the supports.

    Wang and Deng, "Cross-Domain Few-Shot Classification via Adversarial Task
    Augmentation", IJCAI 2021: their fine-tuned variant.

    Attributes:
      steps: Of Adam, on all weights; with 0 it is the head alone.
      rate: Of Adam.
      pseudo: About so many images a task besides the supports; 75 make 4 versions of
        each of 25 supports, itself among them, and 16 of each of 5.
      split: Which are the supports of such a task. ``originals``: the images as they
        are. ``published``: the first of each class as the code has them in a row, all
        versions of one image before the next; with 5 shots most of these are versions
        of one image. ``shuffled``: any of each class.
      by_batch: Whether the images of the task normalise each other at test as they do
        in tuning, as published; else running statistics do.
    """

    steps: int = 50
    rate: float = 1e-3
    pseudo: int = 75
    split: str = "originals"
    by_batch: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("steps", self.steps, 0)
        at_least("rate", self.rate, 0.0)
        if self.split not in SPLITS:
            raise ValueError(f"choose split from {', '.join(SPLITS)}")

    @property
    def transductive(self) -> bool:  # type: ignore[override]
        """By the statistics of the task, or by the head."""
        return self.by_batch or self.head != "matching"

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse other heads, and tasks with too many supports."""
        super().check(task, model)
        check_way(task, model)
        s = len(task.support_labels)
        if self.steps and versions_of(self.pseudo, s) < 2:
            raise UserError(
                f"{self.pseudo} pseudo-samples are fewer than the {s} supports: set "
                f"{self.name}(pseudo={s})"
            )

    def init(self, key: Key[Array, ""], model: Model, task: Task) -> Tuned:
        """Begin with the model as it was trained."""
        del key, task
        return Tuned(model, optax.adam(self.rate).init(model.variables["params"]))

    def step(self, state: Tuned, task: Task, key: Key[Array, ""]) -> Tuned:
        """Make one step on one made task."""
        old = state.model.variables
        images, labels = self.made_task(state.model, task, key)

        def loss(params: PyTree) -> tuple[Array, Variables]:
            model = state.model.replace(variables={**old, "params": params})
            return self._loss(model, images, labels, task)

        grads, stats = jax.grad(loss, has_aux=True)(old["params"])
        updates, optimiser = optax.adam(self.rate).update(grads, state.optimiser)
        params = optax.apply_updates(old["params"], updates)
        variables = {**old, "params": params}
        if stats:
            variables["batch_stats"] = stats
        return Tuned(state.model.replace(variables=variables), optimiser)

    def classify(self, state: Tuned, task: Task) -> Float[Array, "q c"]:
        """Answer by the tuned head."""
        edge = state.model.preprocessing.edge_at(self.image_size)
        images = test_images(task, self.image_size, edge)
        kind, s = inputs_of(state.model), len(task.support_labels)
        rows, _ = state.model.inputs(kind, images, self.by_batch)
        episode = episode_of(task.replace(support=rows[:s], query=rows[s:]))
        logits_qc = state.model.apply_head(episode, train=self.by_batch)
        return distances_of(episode, logits_qc)

    def adapted(self, state: Tuned) -> Model:
        """The model with the task's weights in it."""
        return state.model

    def made_task(
        self, model: Model, task: Task, key: Key[Array, ""]
    ) -> tuple[Float[Array, "n size size 3"], Int[Array, " n"]]:
        """Make images, supports first, and their labels."""
        versions_key, order_key = jax.random.split(key)
        edge = model.preprocessing.edge_at(self.image_size)
        plain = test_batch(task.support, self.image_size, edge)
        versions = versions_of(self.pseudo, len(plain))
        made = pseudo_set(versions_key, plain, versions)
        labels = jnp.repeat(jnp.asarray(task.support_labels), versions)
        order_n = jnp.argsort(~self._supports(order_key, labels, versions), stable=True)
        return made.reshape(-1, *made.shape[2:])[order_n], labels[order_n]

    def _supports(
        self, key: Key[Array, ""], labels_n: Int[Array, " n"], versions: int
    ) -> Array:
        """Which of all versions are supports: as many of each class as it has."""
        place_n = jnp.arange(len(labels_n))
        if self.split == "originals":
            return place_n % versions == 0
        if self.split == "shuffled":
            place_n = jax.random.permutation(key, place_n)
        same_nn = labels_n[:, None] == labels_n[None, :]
        earlier_n = (same_nn & (place_n[None, :] < place_n[:, None])).sum(axis=1)
        return earlier_n < same_nn.sum(axis=1) // versions

    def _loss(
        self, model: Model, images: Array, labels_n: Array, task: Task
    ) -> tuple[Float[Array, ""], Variables]:
        """The loss of the made task's queries, and batch statistics."""
        rows, stats = model.inputs(inputs_of(model), images, True)
        s = len(task.support_labels)
        episode = make_episode(
            *(rows[:s], labels_n[:s], rows[s:], task.num_classes),
            query_labels=labels_n[s:],
        )
        logits_qc, new = model.apply_head(episode, train=True, mutable=["batch_stats"])
        stats = {**stats, "head": new["batch_stats"]} if new else stats
        return self.criterion(logits_qc, labels_n[s:]), stats

    def criterion(
        self, logits_qc: Float[Array, "q c"], labels_q: Int[Array, " q"]
    ) -> Float[Array, ""]:
        """The mean cross-entropy."""
        return optax.softmax_cross_entropy_with_integer_labels(
            logits_qc, labels_q
        ).mean()


@register("gnn_tuned")
class GNNTuned(HeadTuning):
    """The graph network, tuned on each task by versions of the supports."""

    title = "GNN, fine-tuned"
    head = "gnn"


@register("tpn_tuned")
class TPNTuned(HeadTuning):
    """TPN, tuned on each task by versions of the supports."""

    title = "TPN, fine-tuned"
    head = "tpn"


@register("tpn_by_batch")
@dataclasses.dataclass(frozen=True, kw_only=True)
class TPNByBatch(TPNTuned):
    """TPN as it was tested: the network normalises by the task's statistics."""

    title = "TPN, statistics of the task"

    steps: int = 0


@register("relation_tuned")
class RelationTuned(HeadTuning):
    """RelationNet, tuned on each task by versions of the supports."""

    title = "RelationNet, fine-tuned"
    head = "relation"

    def criterion(
        self, logits_qc: Float[Array, "q c"], labels_q: Int[Array, " q"]
    ) -> Float[Array, ""]:
        """The mean squared error of the scores' sigmoids."""
        target_qc = jax.nn.one_hot(labels_q, logits_qc.shape[1])
        return jnp.square(jax.nn.sigmoid(logits_qc) - target_qc).mean()


@register("matching_tuned")
class MatchingTuned(HeadTuning):
    """MatchingNet, tuned on each task by versions of the supports."""

    title = "MatchingNet, fine-tuned"
    head = "matching"
