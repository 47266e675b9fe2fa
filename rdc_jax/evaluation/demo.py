"""A backbone for runs without a checkpoint: trained on built-in images."""

import logging
import pathlib
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)


def train_backbone(config: Mapping[str, Any], workdir: pathlib.Path) -> pathlib.Path:
    """Train a backbone inside the work directory, or find it trained already.

    Args:
      config: A config of ``configs/pretrain.py``.
      workdir: Of the evaluation.

    Returns:
      The checkpoint.
    """
    # Only here: optimisers, data loaders and logs take seconds to import.
    from rdc_jax.pretrain.run import pretrain

    path = workdir / "backbone"
    _log.info("no config.checkpoint: training a backbone on %s", config["source"])
    pretrain(config, path)
    return path
