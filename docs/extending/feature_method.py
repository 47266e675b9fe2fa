"""A method on features: cosines to the class means of the labelled images.

python run_eval.py --config=configs/eval.py:test --workdir=DIR \
    --config.plugins=docs/extending/feature_method.py \
    --config.methods='npc_l2,cosine,cosine(power=0.5;prepare=l2+centre)'
"""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core.rows import l2_normalize
from rdc_jax.methods import FeatureMethod, Task, register


@register("cosine")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Cosine(FeatureMethod):
    """Cosines to the class means of l2-normalised features.

    Attributes:
      power: Of the entries before the means are taken; 1 leaves them as they are.
    """

    title = "Cosine to class means"
    transductive = False  # A query's answer does not depend on the other queries.

    power: float = 1.0

    def __post_init__(self) -> None:
        """Refuse powers that are none, before anything is computed."""
        super().__post_init__()
        if self.power <= 0:
            raise ValueError("must be above 0")

    def class_distances(self, task: Task) -> Float[Array, "q c"]:
        """The smallest is the answer, so cosines with a minus sign."""
        support_sd, query_qd = (self._unit(x) for x in (task.support, task.query))
        member_sc = task.support_labels[:, None] == jnp.arange(task.num_classes)
        if task.support_mask is not None:  # Padding belongs to no class.
            member_sc &= task.support_mask[:, None]
            support_sd = jnp.where(task.support_mask[:, None], support_sd, 0)
        mean_cd = l2_normalize(member_sc.T.astype(support_sd.dtype) @ support_sd)
        return -query_qd @ mean_cd.T

    def _unit(self, feat_nd: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return l2_normalize(jnp.sign(feat_nd) * jnp.abs(feat_nd) ** self.power)
