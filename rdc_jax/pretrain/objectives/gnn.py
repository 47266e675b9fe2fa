"""The graph network of Garcia and Bruna (2018), trained on few-shot tasks."""

from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.objectives.episodic import Episodic, episodic
from rdc_jax.pretrain.options import Options


@base.register("gnn")
def gnn(
    options: Options, num_classes: int, *, layout: str = "one", moments: str = "batch"
) -> Episodic:
    """Graph network on a task of config.episode a step."""
    del num_classes  # A task has classes of its own.
    method = "gnn_balanced" if layout == "balanced" else "gnn"
    return episodic(
        *(options, "gnn", method),
        way=options.episode.way,
        layout=layout,
        moments=moments,
    )
