"""Evaluation of few-shot methods over many tasks.

``--config=configs/eval.py[:demo|:paper|:reduced|:test]``

``demo``, the default, needs nothing: it trains a small backbone on built-in images and
evaluates on built-in domains that look different. ``paper`` is the paper's protocol.
``reduced`` is for image folders of 84 to 96 pixels, with stand-ins for two domains.
``test`` takes about a minute: it shows that everything works.
Every field can be set on the command line: ``--config.episodes=600``.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import ml_collections

import rdc_jax
from rdc_jax.configs import pretrain
from rdc_jax.methods.finetune_options import FinetuneOptions

VARIANTS = ("demo", "paper", "reduced", "test")


def get_config(arg: str = "demo") -> ml_collections.ConfigDict:
    """Make the config of a variant.

    Args:
      arg: One of ``VARIANTS``.

    Returns:
      The config, locked: a field that is not here is a mistake.
    """
    if arg not in VARIANTS:
        raise ValueError(f"no variant {arg!r}: choose from {', '.join(VARIANTS)}")
    config = _paper()
    if arg == "reduced":
        config.update(_reduced())
    elif arg == "demo":
        config.update(_demo())
    elif arg == "test":
        config.update(_test())
    return config.lock()


def variation(arg: str, fields: Mapping[str, Any]) -> ml_collections.ConfigDict:
    """Make the config of a variant with some fields changed.

    Args:
      arg: One of ``VARIANTS``.
      fields: By name, with dots: ``{"rdc.k": 6}``.

    Returns:
      The config, locked.
    """
    config = get_config(arg)
    config.update_from_flattened_dict(dict(fields))
    return config


def _paper() -> ml_collections.ConfigDict:
    """The paper's: 2,000 tasks of eight domains, 5-way, 15 queries a class."""
    return ml_collections.ConfigDict(
        {
            "title": "Paper's benchmark",
            # Images: anything that rdc_jax.data.open_source takes.
            "datasets": "cub,cars,places,plantae,cropdisease,eurosat,isic,chestx",
            "data_dir": "",
            "cache_dir": "",  # Pixels and features; empty: in the work directory.
            "split": "test",
            "skip_unreadable": False,
            # Network: a work directory of run_pretrain.py, or a torch .tar.
            "checkpoint": "",
            "checkpoints": "",  # Other models, NAME=PATH: rdc@NAME answers with one.
            "image_size": 224,
            # Empty: as the checkpoint says, or else as the few-shot field does it.
            "preprocessing": {"resize": "", "interpolation": "", "mean": "", "std": ""},
            # Views of an image: 1, 2 or 4; layers of the network: block3:0.7,block4.
            "features": {"views": 1, "layers": "features"},
            "pretrain": {},  # Without a checkpoint: how to train one.
            # Methods.
            "methods": "npc,npc_l2,rdc_one_space,rdc",
            "baseline": "npc_l2",
            "choose_on": "",  # miniimagenet:val chooses among values, rdc(k=6|10).
            "plugins": "",  # Python files that register methods of your own.
            "systems": False,  # Show other systems' published rows (Table 2) as well.
            "rdc": dataclasses.asdict(rdc_jax.RDCParams()),
            "finetune": _finetune(),  # Of methods that train on each task: rdc_ft, ...
            "source": "",  # Data set of distractors, for methods that ask for them.
            # Tasks.
            "way": 5,
            "ways": "",  # 2-10: drawn for each task, instead of way.
            "shots": "1,5",  # 1-10: drawn for each class; any: as Meta-Dataset does.
            "max_support": 500,  # Most labelled images of a task, with shots=any.
            "query": 15,
            "queries": "",  # 1-15: drawn for each task, instead of query.
            "distractor_queries": 0,  # Queries of none of its classes, in each task.
            "dirichlet": 0.0,  # Above 0: uneven classes among the queries.
            "episodes": 2000,
            "seed": 0,
            "predictions": False,  # Write every query's answers, predictions.parquet.
            "chunk": 0,  # Most tasks at a time; 0: by the memory there is.
        }
    )


def _finetune() -> dict:
    """The fields of ``FinetuneOptions``, lists as words with commas."""
    fields = dataclasses.asdict(FinetuneOptions())
    # The paper's rate; docs/appendix.md says why smaller weights want a smaller one.
    return {**fields, "layers": "", "record": "", "learning_rate": 1e-3}


def _reduced() -> dict:
    """Real images of 84 pixels, 1,000 tasks; stand-ins for two domains."""
    return {
        "title": "Reduced benchmark",
        "datasets": "cub,cars,miniplaces,flowers102,cropdisease,eurosat,isic,chestx",
        "image_size": 84,
        "episodes": 1000,
        # For the small weights that weight decay leaves (docs/appendix.md).
        "finetune": {"learning_rate": 3e-5},
    }


def _demo() -> dict:
    """Built-in images, and a backbone from two minutes of training on two cores."""
    training = pretrain.get_config("test").unlock()
    training.update(
        {
            "epochs": 8,
            "steps_per_epoch": 0,
            "batch_size": 64,
            "log_every": 20,
            "optimiser": {
                "name": "sgd",
                "learning_rate": 0.05,
                "schedule": "cosine",
                "warmup_steps": 50,
                "weight_decay": 5e-4,
            },
            "validation": {"episodes": 200, "query": 15, "every_epochs": 2},
        }
    )
    return {
        "title": "Demo on built-in images",
        "methods": "npc,npc_l2,rdc_one_space,rdc,rdc_plus",
        "datasets": ",".join(
            f"synthetic:{name}" for name in ("textures", "glyphs", "blobs", "tiles")
        ),
        "image_size": 32,
        "episodes": 600,
        "finetune": {"learning_rate": 1e-4},
        "pretrain": training,
    }


def _test() -> dict:
    """About a minute: a few tasks, a network that has hardly been trained."""
    training = pretrain.get_config("test").unlock()
    training.update({"image_size": 16, "epochs": 1, "steps_per_epoch": 5})
    return {
        "title": "Test",
        "datasets": "synthetic:glyphs,synthetic:tiles",
        "image_size": 16,
        "query": 5,
        "episodes": 20,
        "rdc": {"k": 4, "k2": 3, "dim": 16},
        "pretrain": training,
    }
