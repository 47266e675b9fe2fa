"""Nearest prototypes: the baselines that RDC starts from."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core import calibration, prototypes
from rdc_jax.core.params import RDCParams
from rdc_jax.core.rows import float_dtype, task_rows
from rdc_jax.methods.base import FeatureMethod, Task, register


def nearest_prototype(task: Task, *, normalize: bool = True) -> Float[Array, "q c"]:
    """Give distances to the class means of the task's features (Eq. 1-2)."""
    return prototypes.npc(
        task.support,
        task.support_labels,
        task.query,
        task.num_classes,
        normalize=normalize,
        support_mask=task.support_mask,
        query_mask=task.query_mask,
    )


@register("npc")
class NPC(FeatureMethod):
    """Distances to the class means of the features (Eq. 1-2)."""

    title = "NPC"
    transductive = False

    def class_distances(self, task: Task) -> Float[Array, "q c"]:
        """Plain means, plain distances."""
        return nearest_prototype(task, normalize=False)


@register("protonet")
class ProtoNet(NPC):
    """NPC, on a network that was meta-trained for it (``run_pretrain.py``)."""

    title = "ProtoNet"
    trained_by = ("protonet",)


@register("npc_l2")
class NPCL2(FeatureMethod):
    """Distances to the class means of l2-normalised features."""

    title = "NPC + l2 norm"
    transductive = False

    def class_distances(self, task: Task) -> Float[Array, "q c"]:
        """Normalise the rows, then as NPC."""
        return nearest_prototype(task)


@register("npc_subspace")
@dataclasses.dataclass(frozen=True, kw_only=True)
class NPCSubspace(FeatureMethod):
    """Distances to the class means in the subspace of the task (Eq. 9-10).

    Attributes:
      rdc: Its parameters of the subspace are used.
    """

    title = "NPC + l2 norm, subspace"
    transductive = True

    rdc: RDCParams = RDCParams()

    def class_distances(self, task: Task) -> Float[Array, "q c"]:
        """Project all rows of the task, then as NPC + l2 norm."""
        s = len(task.support_labels)
        # As in RDC: a program with both computes the subspace once.
        rows = task_rows(task.support, task.query, task.support_mask, task.query_mask)
        feat_np = calibration.marked_projection(rows, self.rdc)
        dist_qc = nearest_prototype(
            task.replace(support=feat_np[:s], query=feat_np[s:])
        )
        return dist_qc.astype(float_dtype(task.query))
