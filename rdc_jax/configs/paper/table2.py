"""Table 2: RDC-FT beside fine-tuning on the labelled images and other systems.

``--config=configs/paper/table2.py[:paper|:reduced]``; see docs/paper.md.
``:reduced,gnn_ft,gnn_ata`` adds trained systems of ``configs/pretrain.py``, whose
checkpoints are ``--config.checkpoints.gnn_ft=PATH`` and so on.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation
from rdc_jax.configs import pretrain

# The baseline's own recipe (Guo et al. 2020), all labelled images in each step.
RECIPE = "optimiser=sgd;learning_rate=0.01;steps=100"
METHODS = ["npc_l2", f"finetune_linear({RECIPE})", f"finetune({RECIPE})", "rdc_ft"]
# Recipes of their authors' code, and budgets of minutes on a CPU (docs/tuned.md).
SYSTEMS = ["finetune_guo", "finetune_ata", "conft"]
SMALL = [
    "finetune_guo(epochs=50)",
    "finetune_ata(epochs=10)",
    "conft(distractors=32;steps=50)",
]


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``, with trained systems."""
    variant, *trained = arg.split(",")
    for system in trained:
        if system not in pretrain.SYSTEMS:
            known = ", ".join(pretrain.SYSTEMS)
            raise ValueError(f"no system {system!r}: choose from {known}")
    methods = METHODS + (SMALL if variant == "reduced" else SYSTEMS)
    # Each answers by the method of its head: gnn_ft by gnn.
    methods += [f"{system.partition('_')[0]}@{system}" for system in trained]
    fields = {
        "title": "Table 2: state of the art",
        "methods": ",".join(methods),
        "source": "miniimagenet",
        "systems": True,
    }
    return evaluation.variation(variant, fields)
