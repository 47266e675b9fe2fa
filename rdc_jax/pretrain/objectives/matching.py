"""Matching networks (Vinyals et al. 2016), trained on few-shot tasks."""

from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.objectives.episodic import Episodic, episodic
from rdc_jax.pretrain.options import Options


@base.register("matching")
def matching(
    options: Options, num_classes: int, *, context: str = "lstm", scale: float = 100.0
) -> Episodic:
    """Matching networks on a task of config.episode a step."""
    del num_classes  # A task has classes of its own.
    return episodic(options, "matching", context=context, scale=scale)
