"""Feature-wise transformation: any objective, on features that move in training."""

import dataclasses
import functools

from rdc_jax.models.feature_wise import FeatureWise
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.options import Options


@base.register("ft")
def ft(
    options: Options,
    num_classes: int,
    *,
    inner: str = "protonet",
    scale: float = 0.3,
    shift: float = 0.5,
    shortcuts: bool = True,
) -> base.Objective:
    """Noise on the features of another objective's network (Tseng et al. 2020)."""
    norm = functools.partial(FeatureWise, scale=scale, shift=shift, shortcuts=shortcuts)
    options = dataclasses.replace(options, last_norm=norm)
    return base.get_objective(inner)(options, num_classes)
