"""Figure 4: a task before and after RDC-FT, t-SNE in the report.

``--config=configs/paper/figure4.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Figure 4: a task before and after RDC-FT",
        "methods": "npc_l2,rdc,rdc_ft",
        # The paper's pictures: one task of each.
        "datasets": "cub,cropdisease,eurosat",
        "shots": "1",
        "episodes": 1,
    }
    return evaluation.variation(arg, fields)
