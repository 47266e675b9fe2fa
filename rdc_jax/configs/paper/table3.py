"""Table 3: what the subspace and fine-tuning each add.

``--config=configs/paper/table3.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Table 3: components",
        "methods": "npc,npc_l2,rdc_one_space,rdc,rdc_ft_one_space,rdc_ft",
    }
    return evaluation.variation(arg, fields)
