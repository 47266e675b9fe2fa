"""Readings of RDC-FT and choices of ``rdc_plus_ft``, on the last block alone.

``--config=configs/study_rdc_ft.py[:reduced|:test]``; see docs/results.md. Each differs
from its method in what it names. With one block that trains, a task takes a second or
two; ``--config.finetune.layers=`` trains all of them. The tasks are set aside for the
study: those that are reported have another seed.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

READINGS = (
    *("batch_norm=updated", "batch_norm=batch", "augment=True", "batch=16"),
    *("target=fixed", "target=mean", "target_pass=plain", "labelled=True"),
    *("rows=queries", "attention=target", "attention=original", "trained=raw"),
    *("weight_decay=1e-4", "keep=best", "keep=mean", "learning_rate=1e-3"),
    *("learning_rate=3e-5", "layers=block3+block4", "layers=block4*norm*"),
    "answer=rdc_plus",
)
CHOICES = (
    *("steps=4", "steps=16", "learning_rate=3e-5", "learning_rate=3e-4"),
    *("confidence=0.0", "together=False", "keep=mean", "layers=block4*norm*"),
)
METHODS = [
    *("npc_l2", "rdc", "rdc_plus", "rdc_ft"),
    *(f"rdc_ft({one})" for one in READINGS),
    "rdc_plus_ft",
    *(f"rdc_plus_ft({one})" for one in CHOICES),
]


def get_config(arg: str = "reduced") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Readings of RDC-FT",
        "methods": ",".join(METHODS),
        "baseline": "rdc_plus",
        "seed": 102,
        "finetune.layers": "block4",
        "finetune.batch_norm": "running",
        "finetune.learning_rate": 1e-4,
        "finetune.steps": 10,
        "finetune.record": "3",
    }
    if arg == "reduced":
        fields["episodes"] = 10
    return evaluation.variation(arg, fields)
