"""Every method on features, on the same tasks and the same features.

``--config=configs/transductive.py[:reduced|:paper|:test]``; see docs/transductive.md.
``--config.dirichlet=2`` makes the queries' classes uneven.
"""

import ml_collections

from rdc_jax.configs import eval as evaluation

METHODS = [
    *("npc_l2", "npc_prepared", "tcpr", "logistic"),
    *("rdc_one_space", "rdc", "rdc_plus"),
    *("soft_kmeans", "bd_cspn", "label_propagation", "laplacian_shot"),
    *("paddle", "alpha_tim", "ldp_tr"),
    *("tim", "pt_map", "opta", "proto_lp"),  # These assume balance.
    "npc_prepared(prepare=power+l2+bpa)",
]


def get_config(arg: str = "reduced") -> ml_collections.ConfigDict:
    """Make the config of a variant of ``configs/eval.py``."""
    fields = {
        "title": "Transductive methods",
        "methods": ",".join(METHODS),
        "seed": 31415,  # Fixed before any of its tasks was seen.
    }
    return evaluation.variation(arg, fields)
