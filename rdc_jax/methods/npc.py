"""Nearest prototypes: the baselines that RDC starts from."""

from jaxtyping import Array, Float

from rdc_jax.core import prototypes
from rdc_jax.methods.registry import Episode, Settings, register


@register("npc", title="NPC", transductive=False)
def npc(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """Euclidean distances to the means of the classes (Eq. 1-2)."""
    return prototypes.npc(*episode, settings.num_classes, normalize=False)


@register("npc_l2", title="NPC + l2 norm", transductive=False)
def npc_l2(episode: Episode, settings: Settings) -> Float[Array, "q c"]:
    """The same on l2-normalised features."""
    return prototypes.npc(*episode, settings.num_classes, normalize=True)
