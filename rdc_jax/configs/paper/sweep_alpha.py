"""Appendix: the attention on neighbours in RDC-FT.

``--config=configs/paper/sweep_alpha.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

VALUES = (0, 0.1, 0.3, 0.5, 0.7, 0.9)
METHODS = ["npc_l2", *(f"rdc_ft(alpha={value})" for value in VALUES)]


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Sensitivity to alpha",
        "methods": ",".join(METHODS),
    }
    return evaluation.variation(arg, fields)
