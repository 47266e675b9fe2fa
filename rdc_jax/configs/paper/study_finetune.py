"""The readings of RDC-FT that the paper leaves open, with accuracy along the steps.

``--config=configs/paper/study_finetune.py[:paper|:reduced]``; see docs/paper.md.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

# Each differs from the config's own reading in what it names.
READINGS = (
    "learning_rate=1e-3",
    "learning_rate=1e-4",
    "relative=True;learning_rate=1e-2",
    "batch_norm=batch",
    "batch_norm=running",
    "sign=1",
    "include_self=True",
    "target=fixed",
    "layers=block3+block4",
)
METHODS = ["npc_l2", "rdc", "rdc_ft", *(f"rdc_ft({reading})" for reading in READINGS)]


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Readings of RDC-FT",
        "methods": ",".join(METHODS),
        "shots": "1",
        "finetune.record": "1,2,5,10",
    }
    return evaluation.variation(arg, fields)
