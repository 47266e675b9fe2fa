"""Nearest prototypes: the baselines that RDC starts from."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdc_jax.core import calibration, prototypes
from rdc_jax.methods.registry import Episode, Settings, register


@register("npc", title="NPC", transductive=False)
def npc(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """Euclidean distances to the means of the classes (Eq. 1-2)."""
    return prototypes.npc(*episode, settings.num_classes, normalize=False)


@register("npc_l2", title="NPC + l2 norm", transductive=False)
def npc_l2(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """The same on l2-normalised features."""
    return prototypes.npc(*episode, settings.num_classes, normalize=True)


@register("npc_subspace", title="NPC + l2 norm, subspace", transductive=True)
def npc_subspace(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """The same in the subspace of ``config.rdc``, which the task's images span."""
    s = len(episode.support)
    feat_nd = jnp.concatenate([episode.support, episode.query])
    feat_np = calibration.subspace(feat_nd, settings.rdc)
    return prototypes.npc(
        feat_np[:s], episode.support_labels, feat_np[s:], settings.num_classes
    )
