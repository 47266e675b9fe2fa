"""Relation networks (Sung et al. 2018), trained on few-shot tasks."""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rdc_jax.models.heads.episode import check_choices
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.objectives.episodic import Episodic, episodic
from rdc_jax.pretrain.options import Options


@dataclasses.dataclass(frozen=True)
class RelationObjective(Episodic):
    """The scores of pairs against whether they are of one class.

    Attributes:
      criterion: ``mse`` of the scores' sigmoids, as in the paper and in two of the
        cross-domain codes; ``softmax``: cross-entropy of the scores, as in the third.
    """

    criterion: str = "mse"

    def __post_init__(self) -> None:
        check_choices(self, criterion=Literal["mse", "softmax"])

    def judge(
        self,
        logits_qc: Float[Array, "q c"],
        labels_q: Int[Array, " q"],
        batch_stats: dict[str, Any],
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Give the loss and the accuracy of scores."""
        loss, aux = base.classify(logits_qc, labels_q, batch_stats)
        if self.criterion == "softmax":
            return loss, aux
        target_qc = jax.nn.one_hot(labels_q, self.way)
        return jnp.square(jax.nn.sigmoid(logits_qc) - target_qc).mean(), aux


@base.register("relation")
def relation(
    options: Options,
    num_classes: int,
    *,
    criterion: str = "mse",
    moments: str = "batch",
) -> Episodic:
    """Relation networks on a task of config.episode a step."""
    del num_classes  # A task has classes of its own.
    fields = {"criterion": criterion}
    return episodic(
        options, "relation", kind=RelationObjective, fields=fields, moments=moments
    )
