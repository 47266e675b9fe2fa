"""NSAE (Liang et al., ICCV 2021), our reading: reconstruct, then classify.

The authors published no code. What their paper leaves open is read as in an unofficial
one, and is a parameter here or in the objective ``nsae`` of pre-training.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.data.transforms import between_0_and_1
from rdc_jax.methods.adapt import Adaptation, on_features
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.finetune_guo import FinetuneGuo
from rdc_jax.methods.tuned import Loss, State, forward, nearest_by_cosine
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Momentum(FinetuneGuo):
    """Batches of supports, and one SGD with momentum and decay for all weights."""

    dampening: float = 0.0

    def optimiser(self) -> optax.GradientTransformation:
        """The same for network, decoder and head."""
        return self.dampened()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reconstruct(Momentum):
    """The first phase: network and decoder learn the look of the labelled images."""

    parts = ("backbone", "decoder")

    def start(self, key: Key[Array, ""], width: int, task: Task) -> Any:
        """No head."""
        del key, width, task
        return {}

    def batch_loss(
        self, images: Float[Array, "b h w 3"], labels_b: Int[Array, " b"]
    ) -> Loss:
        """Mean squared error of the decoded images."""
        del labels_b

        def loss(model: Model, head: Any) -> tuple[Float[Array, ""], Model]:
            del head
            feat_bd, model = forward(model, images)
            error = model.decode(feat_bd) - between_0_and_1(images)
            return jnp.square(error).mean(), model

        return loss

    def classify(self, state: State, task: Task) -> Float[Array, "q c"]:
        """The nearest prototype by the cosine, if asked for on the way."""
        return nearest_by_cosine(on_features(task, self.features(state, task)))


@register("nsae")
@dataclasses.dataclass(frozen=True, kw_only=True)
class NSAE(Momentum):
    """Network and decoder reconstruct the supports, then a linear head is fitted too.

    Attributes:
      epochs: Passes over the supports in the second phase.
      reconstruct_epochs: Passes in the first phase.
      reconstruct_rate: Learning rate of the first phase.
      reconstruct_decay: Weight decay of the first phase.
    """

    title = "NSAE, our reading"
    trained_by = ("nsae",)

    epochs: int = 200
    reconstruct_epochs: int = 30
    reconstruct_rate: float = 1e-3
    reconstruct_decay: float = 5e-4

    @property
    def phases(self) -> tuple[Adaptation, ...]:
        """Reconstruction, then classification."""
        first = Reconstruct(
            image_size=self.image_size,
            answer=self.answer,
            rdc=self.rdc,
            epochs=self.reconstruct_epochs,
            batch=self.batch,
            learning_rate=self.reconstruct_rate,
            momentum=self.momentum,
            dampening=self.dampening,
            weight_decay=self.reconstruct_decay,
        )
        return first, self

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse models that cannot decode images of this size."""
        super().check(task, model)
        if model is None:
            return
        if model.spec.decoder is None:
            raise UserError(
                "it needs a model with a decoder: give one that was trained by "
                "configs/pretrain.py:nsae"
            )
        size = dict(model.spec.decoder_options)["size"]
        if size != self.image_size:
            raise UserError(
                f"the model decodes images of {size} px: set --config.image_size={size}"
            )
