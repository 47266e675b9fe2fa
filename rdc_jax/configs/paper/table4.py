"""Table 4: kernels of the subspace, for nearest prototypes and for RDC.

``--config=configs/paper/table4.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

KERNELS = ("none", "linear", "gaussian", "polynomial", "sigmoid", "tanh")
METHODS = [
    f"{method}(subspace={kernel})"
    for method in ("npc_subspace", "rdc")
    for kernel in KERNELS
]


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Table 4: subspaces",
        "methods": ",".join(METHODS),
        "baseline": "npc_subspace(subspace=none)",
    }
    return evaluation.variation(arg, fields)
