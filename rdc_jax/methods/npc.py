"""Nearest prototypes: the baselines that RDC starts from."""

from jaxtyping import Array, Float

from rdc_jax.core import calibration, prototypes
from rdc_jax.core.rows import task_rows
from rdc_jax.methods.registry import Episode, Settings, register


@register("npc", title="NPC", transductive=False)
def npc(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """Distances to the class means of the features (Eq. 1-2)."""
    return prototypes.npc(*episode, settings.num_classes, normalize=False)


@register("protonet", title="ProtoNet", transductive=False)
def protonet(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """NPC, on a network that was meta-trained for it (``run_pretrain.py``)."""
    return npc(episode, settings)


@register("npc_l2", title="NPC + l2 norm", transductive=False)
def npc_l2(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """Distances to the class means of l2-normalised features."""
    return prototypes.npc(*episode, settings.num_classes, normalize=True)


@register("npc_subspace", title="NPC + l2 norm, subspace", transductive=True)
def npc_subspace(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """Distances to the class means in the subspace of the task (Eq. 9-10)."""
    s = len(episode.support)
    # As in RDC: a program with both computes the subspace once.
    rows = task_rows(episode.support, episode.query)
    feat_np = calibration.marked_projection(rows, settings.rdc)
    return prototypes.npc(
        feat_np[:s], episode.support_labels, feat_np[s:], settings.num_classes
    )
