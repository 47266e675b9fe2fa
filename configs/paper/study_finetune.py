"""The readings of RDC-FT that the paper leaves open, with accuracy along the steps.

``--config=configs/paper/study_finetune.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from configs import eval as evaluation

READINGS = (
    "batch_norm=running;learning_rate=1e-4",
    "batch_norm=batch;learning_rate=1e-4",
    "batch_norm=updated;learning_rate=1e-4",
    "batch_norm=running;learning_rate=1e-3",
    "batch_norm=batch;learning_rate=1e-3",
    "batch_norm=running;relative=True;learning_rate=1e-2",
    "batch_norm=running;learning_rate=1e-4;sign=1",
    "batch_norm=running;learning_rate=1e-4;include_self=True",
    "batch_norm=running;learning_rate=1e-4;target=fixed",
    "batch_norm=running;learning_rate=1e-4;layers=block3+block4",
)
METHODS = ["npc_l2", "rdc", *(f"rdc_ft({reading})" for reading in READINGS)]


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Readings of RDC-FT",
        "methods": ",".join(METHODS),
        "shots": "1",
        "finetune.record": "1,2,5,10",
    }
    return evaluation.variation(arg, fields)
