"""Table 5: RDC on a network fine-tuned with data augmentation.

``--config=configs/paper/table5.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Table 5: with data augmentation",
        "methods": "npc_l2,npc_l2_da,rdc_da",
        "baseline": "npc_l2_da",
        # The paper has no recipe for this network: that of Table 2's baseline.
        "finetune.optimiser": "sgd",
        "finetune.learning_rate": 0.01,
        "finetune.steps": 100,
    }
    return evaluation.variation(arg, fields)
