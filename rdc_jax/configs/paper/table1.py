"""Table 1: RDC beside the baselines that train nothing on a task.

``--config=configs/paper/table1.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Table 1: baselines",
        "methods": "npc,npc_l2,rdc",
    }
    return evaluation.variation(arg, fields)
