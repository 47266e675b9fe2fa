"""Pre-training of a backbone, and systems trained on few-shot tasks.

``--config=configs/pretrain.py[:paper|:reduced|:test]``
``--config=configs/pretrain.py:SYSTEM[,reduced|,test]``

``paper`` is the paper's and the default. ``reduced`` is a recipe for hours on a CPU
with miniImageNet at 84 pixels. ``test`` takes seconds, on images made on the spot.
``SYSTEMS`` and ``CLASSIFIERS`` come in these scales too: ``:protonet,reduced``.
Every field can be set on the command line: ``--config.batch_size=128``.
"""

import ml_collections

SCALES = ("paper", "reduced", "test")

# What each system minimises.
SYSTEMS = {
    "protonet": "protonet",
    "protonet_ft": "protonet+ft",
    "protonet_ata": "protonet+ata(step_size=2)",
    "gnn": "gnn",
    "gnn_ft": "gnn+ft",
    "gnn_lft": "gnn+lft(domains=cub+cars+places)",
    "gnn_lrp": "gnn+lrp",
    "gnn_ata": "gnn+ata(step_size=80;keep=0.5)",
    "tpn": "tpn",
    "tpn_ata": "tpn+ata(step_size=20;keep=0.6)",
    "relation": "relation",
    "relation_ata": "relation+ata",
    "matching": "matching",
}
# Systems that train on batches of images instead of tasks, by their objectives' names.
CLASSIFIERS = ("bsr", "nsae")


def get_config(arg: str = "paper") -> ml_collections.ConfigDict:
    """Make the config of a variant.

    Args:
      arg: A scale, a system, or both: ``protonet,reduced``.

    Returns:
      The config, locked: a field that is not here is a mistake.
    """
    system, scale = _read(arg)
    config = _paper()
    if system in CLASSIFIERS:
        config.update(_batches(system))
    elif system:
        config.update(_tasks(SYSTEMS[system]))
    if system == "gnn_lft" and scale != "paper":
        config.method = "gnn+lft"  # The training source, twice.
    if scale == "reduced":
        config.update(_reduced_system() if system else _reduced())
        if system in SYSTEMS:
            # The packaged weights are small: a rate of 1e-3 loses what they know.
            config.optimiser.backbone = 0.03
    elif scale == "test":
        config.update(_test())
    return config.lock()


def _read(arg: str) -> tuple[str, str]:
    """Take a system, or none, and a scale from the argument."""
    system, scale = "", ""
    for word in arg.split(","):
        if word in (*SYSTEMS, *CLASSIFIERS) and not system:
            system = word
        elif word in SCALES and not scale:
            scale = word
        else:
            known = ", ".join([*SCALES, *SYSTEMS, *CLASSIFIERS])
            raise ValueError(f"no variant {arg!r}: choose from {known}")
    return system, scale or "paper"


def _paper() -> ml_collections.ConfigDict:
    """The paper's: 400 epochs of Adam at 1e-3 on crops of 224 pixels, batches of 64."""
    return ml_collections.ConfigDict(
        {
            # Images: any source that rdc_jax.data.open_source takes.
            "source": "miniimagenet",
            "split": "train",
            "data_dir": "",
            "cache_dir": "",  # Decoded pixels; empty: in the work directory.
            "image_size": 224,
            "stored_size": 0,  # Edge of the decoded squares; 0: 1.15 x image_size.
            # Network.
            "arch": "resnet10",
            "conv": "auto",
            "dtype": "float32",  # Or bfloat16.
            "init_from": "",  # Checkpoint whose backbone and head to start from.
            "frozen_views": 0,  # 1 or more: train the head alone, on so many views.
            # Objective: one of run_pretrain.py --list, or of a plugin.
            "method": "cross_entropy",
            "plugins": "",  # Python files: objectives, backbones, sources.
            "label_smoothing": 0.0,
            "episode": {"way": 5, "shot": 5, "query": 16},
            # Length.
            "epochs": 400,
            "steps_per_epoch": 0,  # 0: a pass over the images.
            "batch_size": 64,
            "phases": "",  # "48:0.5,64:0.3": smaller crops for that share of steps.
            # Weights.
            "optimiser": {
                "name": "adam",  # Or adamw, sgd.
                "learning_rate": 1e-3,
                "schedule": "constant",  # Or cosine.
                "warmup_steps": 0,
                "momentum": 0.9,
                "weight_decay": 0.0,
                "backbone": 1.0,  # Multiple of the rate for the backbone.
            },
            "ema": 0.0,  # Decay of averaged weights; 0: none.
            # Few-shot accuracy on held-out classes decides which weights are best.
            "validation": {
                "source": "",  # Empty: the training source.
                "split": "val",
                "way": 5,
                "shots": "1,5",  # Empty: as in training.
                "query": 15,
                "episodes": 600,
                "every_epochs": 1,
            },
            # Record.
            "seed": 0,
            "log_every": 50,
            "checkpoint_every": 0,  # Steps; 0: at each validation only.
        }
    )


def _reduced() -> dict:
    """Hours on a CPU: SGD, cosine schedule, growing crops of 84-pixel images."""
    return {
        "image_size": 84,
        "stored_size": 84,
        "epochs": 24,
        "phases": "48:0.5,64:0.3",
        "label_smoothing": 0.1,
        "optimiser": {
            "name": "sgd",
            "learning_rate": 0.05,
            "schedule": "cosine",
            "warmup_steps": 300,
            "weight_decay": 5e-4,
        },
    }


def _tasks(method: str) -> dict:
    """What the systems share: 40,000 tasks, Adam at 1e-3 (with ``init_from``)."""
    return {
        "method": method,
        "steps_per_epoch": 100,
        "validation": {"shots": "", "query": 16, "episodes": 100},
    }


def _batches(method: str) -> dict:
    """What BSR and NSAE share: SGD at 1e-3 on batches of 16, from random weights."""
    return {
        "method": method,
        "batch_size": 16,
        "optimiser": {"name": "sgd", "learning_rate": 1e-3, "weight_decay": 5e-4},
    }


def _reduced_system() -> dict:
    """Of a system: 20 epochs of 84-pixel images, from the packaged weights."""
    return {
        "image_size": 84,
        "stored_size": 84,
        "init_from": "packaged",
        "epochs": 20,
        "validation": {"episodes": 600, "every_epochs": 2},
    }


def _test() -> dict:
    """Seconds: a few steps on images made on the spot."""
    return {
        "source": "synthetic:objects",
        "image_size": 32,
        "stored_size": 32,
        "epochs": 2,
        "steps_per_epoch": 10,
        "batch_size": 16,
        "log_every": 5,
        "validation": {"episodes": 50, "query": 5},
    }
