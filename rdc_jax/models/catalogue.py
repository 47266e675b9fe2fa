"""The checkpoints that can be asked for, as text for a terminal."""

import json
import pathlib

import safetensors

from rdc_jax.models import BACKBONES, weights
from rdc_jax.runtime.text import paragraph, two_columns

_FORMS = (
    ("WORKDIR", "of run_pretrain.py: the step of the best validation"),
    ("WORKDIR/latest", "the last step instead, or WORKDIR/checkpoints/1200: one step"),
    ("FILE.tar", "torch files of the field (399.tar); torch itself is not needed"),
    ("packaged", "the weights that come with the package"),
    ("FILE.safetensors", "what python -m rdc_jax.models.weights CHECKPOINT OUT writes"),
    ("DIR", "Hugging Face, timm, open_clip: config.json, model.safetensors"),
    ("FILE.pth", "weights of DINO, DINOv2 or timm alone, .safetensors too"),
    ("FILE.py:NAME", "a function that gives a function from images to features"),
)


def checkpoints() -> str:
    """List the weights that come with the package, and what else is accepted.

    >>> "WORKDIR" in checkpoints()
    True
    """
    lines = ["accepted:", two_columns(_FORMS), "", "comes with the package:"]
    networks = paragraph(f"networks: {', '.join(BACKBONES)}", indent=0)
    return "\n".join([*lines, two_columns([_packaged()]), "", networks])


def _packaged() -> tuple[str, str]:
    path = weights.PACKAGED
    if not path.is_file():
        return path.name, "not in this copy"
    with safetensors.safe_open(path, framework="numpy") as opened:
        noted = json.loads(opened.metadata()["metadata"])
    size = path.stat().st_size / 1e6
    about = f"{noted['arch']} at {noted['image_size']} px, {size:.1f} MB; "
    here = pathlib.Path.cwd()  # As one would type it from here.
    name = path.relative_to(here) if path.is_relative_to(here) else path
    return str(name), about + "docs/model_card.md says what it can do"
