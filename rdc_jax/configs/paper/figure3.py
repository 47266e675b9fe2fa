"""Figure 3: the losses of RDC-FT.

``--config=configs/paper/figure3.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Figure 3: losses",
        "methods": "npc_l2,rdc_ft_mse,rdc_ft_kl,rdc_ft",
    }
    return evaluation.variation(arg, fields)
