"""Table 2: RDC-FT beside fine-tuning on the labelled images and other systems.

``--config=configs/paper/table2.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from configs import eval as evaluation


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Table 2: state of the art",
        "methods": "npc_l2,finetune_linear,finetune,rdc_ft",
        "systems": True,
    }
    return evaluation.variation(arg, fields)
