"""ConFT and MT-ConFT (Das et al., ICCV 2021): contrast with images of the source."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from rdc_jax.core.rows import l2_normalize
from rdc_jax.data.transforms import train_batch
from rdc_jax.methods.adapt import on_features
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.tuned import (
    State,
    Tuned,
    cross_entropy,
    forward,
    nearest_by_cosine,
)
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

_TINY = 1e-5  # Of the authors' code, in the logarithm and in norms.


@register("conft")
@dataclasses.dataclass(frozen=True, kw_only=True)
class ConFT(Tuned):
    """All layers: pairs of a class move together, away from others and the source.

    Supports go through the random train transform, distractors do not. The authors'
    code computes the weights of the two kinds of negatives, so that both weigh the same
    in total; their option for them has no effect.

    Attributes:
      steps: Of Adam; the authors call them epochs.
      distractors: Images of ``config.source`` in a step.
      temperature: Of the cosines.
      learning_rate: Of Adam.
      smallest: Share of an image's area that a crop keeps at least.
    """

    title = "ConFT"
    transductive = False
    multi_task: ClassVar[bool] = False

    steps: int = 100
    distractors: int = 128
    temperature: float = 0.05
    learning_rate: float = 1e-3
    smallest: float = 0.2

    @property
    def source_images(self) -> int:
        """As ``distractors`` says."""
        return self.distractors

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse tasks without as many supports in every class."""
        super().check(task, model)
        s, c = len(task.support_labels), task.num_classes
        if s % c:
            raise UserError(f"{s} supports of {c} classes: it needs as many of each")

    def optimiser(self) -> optax.GradientTransformation:
        """Adam."""
        return optax.adam(self.learning_rate)

    def step(self, state: State, task: Task, key: Key[Array, ""]) -> State:
        """Make one step on pairs of supports and on distractors."""
        pair_key, view_key = jax.random.split(key)
        rows = pairs(pair_key, task.support_labels, task.num_classes)
        keys = jax.random.split(view_key, len(rows))
        scale = (self.smallest, 1.0)
        images = train_batch(keys, task.support[rows], self.image_size, scale=scale)
        source_images, source_labels = task.distractors
        source = self.transformed(state, source_images)
        labels_l = task.support_labels[rows]

        def loss(model: Model, head: Any) -> tuple[Float[Array, ""], Model]:
            # By themselves: each kind has its own batch statistics.
            far_md, model = forward(model, source)
            near_ld, model = forward(model, images)
            value = contrast(near_ld, labels_l, far_md, self.temperature)
            if self.multi_task:
                logit_mc = cosine_logits(head, far_md)
                value += cross_entropy(logit_mc, source_labels)
            return value, model

        return self.descend(state, loss)

    def classify(self, state: State, task: Task) -> Float[Array, "q c"]:
        """The nearest prototype by the cosine, by the running statistics."""
        return nearest_by_cosine(on_features(task, self.features(state, task)))


@register("mt_conft")
@dataclasses.dataclass(frozen=True, kw_only=True)
class MTConFT(ConFT):
    """As ``conft``, and a cosine head goes on telling the source's classes apart."""

    title = "MT-ConFT"
    multi_task = True

    steps: int = 200
    distractors: int = 64
    temperature: float = 0.1

    def start(self, key: Key[Array, ""], width: int, task: Task) -> Any:
        """Directions of torch's linear layer, each with its length as a gain."""
        shape, bound = (task.num_source_classes, width), width**-0.5
        direction_cd = jax.random.uniform(key, shape, jnp.float32, -bound, bound)
        gain_c = jnp.linalg.norm(direction_cd, axis=1)
        return {"direction": direction_cd, "gain": gain_c}


def pairs(
    key: Key[Array, ""], labels_s: Int[Array, " s"], num_classes: int
) -> Int[Array, " l"]:
    """Draw supports so that rows 2i and 2i + 1 are two of a class, or one twice.

    Each class gives all its supports, in random order, less one if they are odd; a
    single one stands beside itself.
    """
    s = labels_s.shape[0]
    order_ck = jnp.lexsort((jax.random.uniform(key, (s,)), labels_s))
    order_ck = order_ck.reshape(num_classes, -1)
    shot = order_ck.shape[1]
    if shot == 1:
        return jnp.repeat(order_ck.ravel(), 2)
    return order_ck[:, : shot - shot % 2].ravel()


def contrast(
    near_ld: Float[Array, "l d"],
    labels_l: Int[Array, " l"],
    far_md: Float[Array, "m d"],
    temperature: float,
) -> Float[Array, ""]:
    """Each row against its partner, other classes and the source, all as likely."""
    unit_ld = l2_normalize(near_ld)
    near_ll = jnp.exp(unit_ld @ unit_ld.T / temperature)
    far_lm = jnp.exp(unit_ld @ l2_normalize(far_md).T / temperature)
    other_ll = labels_l[:, None] != labels_l[None, :]
    others_l, distractors_l = negatives(near_ll, other_ll, far_lm)
    row_l = jnp.arange(len(near_ll))
    partner_l = near_ll[row_l, row_l ^ 1]
    share_l = partner_l / (partner_l + others_l + distractors_l)
    return -jnp.log(share_l + _TINY).mean()


def negatives(
    near_ll: Float[Array, "l l"],
    other_ll: Bool[Array, "l l"],
    far_lm: Float[Array, "l m"],
) -> tuple[Float[Array, " l"], Float[Array, " l"]]:
    """Total weight of each row's two kinds of negatives: the same if all are alike."""
    m = far_lm.shape[1]
    others_l = other_ll.sum(axis=1)
    alpha_l = m / (m + others_l)
    others_l = 2 * alpha_l * jnp.where(other_ll, near_ll, 0).sum(axis=1)
    return others_l, 2 * (1 - alpha_l) * far_lm.sum(axis=1)


def cosine_logits(head: Any, feat_md: Float[Array, "m d"]) -> Float[Array, "m c"]:
    """Cosines to the head's directions, each times its gain."""
    length_m1 = jnp.linalg.norm(feat_md, axis=1, keepdims=True)
    direction_cd = l2_normalize(head["direction"])
    return feat_md / (length_m1 + _TINY) @ (head["gain"][:, None] * direction_cd).T
