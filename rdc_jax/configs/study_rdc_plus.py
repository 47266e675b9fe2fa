"""How the numbers of ``rdc_plus`` were chosen: each alone set to other values.

``--config=configs/study_rdc_plus.py[:reduced|:test]``; see docs/transductive.md. With
``--config.dirichlet=2``, too. The tasks are set aside for it: those that are reported
have another seed.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

CHOICES = (
    *("evened=False", "turns=1", "turns=2", "turns=4", "k=5", "k=12"),
    *("alpha=0.7", "alpha=0.9", "strength=3.0", "strength=30.0"),
    *("temperature=1.0", "temperature=4.0", "prior=0.2", "prior=1.0"),
    *("join=0.1", "join=1.0", "sharpen=1.0"),
)
METHODS = ["npc_l2", "rdc", "rdc_plus", *(f"rdc_plus({one})" for one in CHOICES)]


def get_config(arg: str = "reduced") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Choices of RDC+",
        "methods": ",".join(METHODS),
        "baseline": "rdc_plus",
        "features.views": 4,
        "features.layers": "features,block3:0.7",
        "seed": 102,
    }
    if arg == "reduced":
        fields["episodes"] = 120
    return evaluation.variation(arg, fields)
