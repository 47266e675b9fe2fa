"""Appendix: dimensions of the subspace, by each reading of the kernel input.

``--config=configs/paper/sweep_dim.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

VALUES = (16, 32, 64, 128, 256, 512)
READINGS = ("", ";centre=False", ";centre=False;kernel_input=raw")
METHODS = [
    "npc_l2",
    *(
        f"{method}(dim={value}{reading})"
        for method in ("npc_subspace", "rdc")
        for reading in READINGS
        for value in VALUES
    ),
]


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Sensitivity to p",
        "methods": ",".join(METHODS),
    }
    return evaluation.variation(arg, fields)
