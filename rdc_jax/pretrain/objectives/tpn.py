"""Transductive propagation (Liu et al. 2019), trained on few-shot tasks."""

from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.objectives.episodic import Episodic, episodic
from rdc_jax.pretrain.options import Options


@base.register("tpn")
def tpn(
    options: Options,
    num_classes: int,
    *,
    k: int = 20,
    alpha: float = 0.99,
    uniform: bool = True,
) -> Episodic:
    """Transductive propagation on a task of config.episode a step."""
    del num_classes  # A task has classes of its own.
    return episodic(options, "tpn", k=k, alpha=alpha, uniform=uniform)
