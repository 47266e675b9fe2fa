"""Table 5: RDC on a network fine-tuned with data augmentation.

``--config=configs/paper/table5.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

SYSTEMS = ["da", "da(answer=rdc)", "lmm_pqs", "lmm_pqs(answer=rdc)"]
# Budgets of minutes on a CPU (docs/tuned.md).
SMALL = [
    "da(epochs=10)",
    "da(epochs=10;answer=rdc)",
    "lmm_pqs(steps=25;pseudo=50)",
    "lmm_pqs(steps=25;pseudo=50;answer=rdc)",
]


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    full_batch = ["npc_l2", "npc_l2_da", "rdc_da"]
    others = SMALL if arg == "reduced" else SYSTEMS
    fields = {
        "title": "Table 5: with data augmentation",
        "methods": ",".join(full_batch + others),
        "baseline": "npc_l2_da",
        # The paper has no recipe for this network. For the first two: that of Table
        # 2's baseline; the others have the recipes of their authors' code.
        "finetune.optimiser": "sgd",
        "finetune.learning_rate": 0.01,
        "finetune.steps": 100,
    }
    return evaluation.variation(arg, fields)
