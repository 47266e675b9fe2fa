"""A head of your own, with weights, and the method that answers by it.

    python run_eval.py --config.plugins=head.py --config.methods=projected …

A head is a linen module under a name. Its weights are in the checkpoint, under ``head``
beside ``backbone``, and the name and options in the metadata: ``head="projection"``,
``head_options={"dim": 16}``. A method says which head it needs, and a model without it
is refused before any work.
"""

import dataclasses

from flax import linen as nn
from jaxtyping import Array, Float

from rdc_jax.core.prototypes import npc
from rdc_jax.methods import Method, Task, register
from rdc_jax.models import HEADS, Model


@HEADS.register("projection")
class Projection(nn.Module):
    """A linear map to the space where distances are taken."""

    dim: int

    @nn.compact
    def __call__(self, feat_nd: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Project features."""
        return nn.Dense(self.dim, use_bias=False, name="map")(feat_nd)


@register("projected")
@dataclasses.dataclass(frozen=True, kw_only=True)
class ProjectedNPC(Method):
    """Nearest class means of projected features."""

    title = "NPC, projected"
    transductive = False
    head = "projection"

    def __call__(self, task: Task, model: Model | None = None) -> Float[Array, "q c"]:
        """Give distances to the class means."""
        assert model is not None  # ``check`` has seen to it.
        return npc(
            model.apply_head(task.support),
            task.support_labels,
            model.apply_head(task.query),
            task.num_classes,
            support_mask=task.support_mask,
            query_mask=task.query_mask,
        )
