"""Vision towers of open_clip, by ``open_clip_config.json``."""

import math
from typing import Any

from rdc_jax.models.foreign import images, timm
from rdc_jax.models.foreign.convert import Known, Source
from rdc_jax.models.foreign.files import Files
from rdc_jax.runtime.errors import UserError

_HEAD_WIDTH = 64
_UNUSED = r"(?!visual\.)"  # The tower that reads text.


def recognises(files: Files) -> bool:
    """Tell by the config."""
    return "model_cfg" in files.config


def read(files: Files) -> Known:
    """Say what network it is, and what its tensors are called.

    Raises:
      UserError: The tower is no vision transformer.
    """
    model = files.config["model_cfg"]
    config = model["vision_cfg"]
    size = config.get("image_size", 224)
    size = size[0] if isinstance(size, list) else size
    seen = images.of_open_clip(files.config.get("preprocess_cfg") or {}, size)
    if "timm_model_name" in config:
        tower = files.tensors.below("visual.trunk.")
        given = {"global_pool": config.get("timm_pool")}
        return timm.vit(tower, config["timm_model_name"], given, seen)
    if "visual.class_embedding" not in files.tensors:
        raise UserError(
            f"{files.path} has no vision transformer: known of open_clip are those"
        )
    return _tower(files, model, seen)


def _tower(files: Files, model: dict[str, Any], seen: Any) -> Known:
    tensors, config = files.tensors, model["vision_cfg"]
    width, _, _, patch = tensors["visual.conv1.weight"].shape
    depth = config["layers"]
    projected = "visual.proj" in tensors
    first = "visual.transformer.resblocks.0"
    options: dict[str, Any] = {
        "width": width,
        "depth": depth,
        "heads": width // config.get("head_width", _HEAD_WIDTH),
        "patch": patch,
        "grid": math.isqrt(len(tensors["visual.positional_embedding"]) - 1),
        "hidden": len(tensors[f"{first}.mlp.c_fc.weight"]),
        "activation": "quick_gelu" if model.get("quick_gelu") else "gelu",
        # Positions are resampled with antialiasing, when weights are loaded.
        "antialias": True,
        "pre_norm": True,
        "layer_scale": f"{first}.ls_1.gamma" in tensors,
        "patch_bias": False,
        "projection": tensors["visual.proj"].shape[1] if projected else 0,
        "epsilon": 1e-5,
    }
    keys: dict[str, Any] = {
        "patches": "visual.conv1",
        "class_token": "visual.class_embedding",
        "positions": "visual.positional_embedding",
        "norm_pre": "visual.ln_pre",
        "norm": "visual.ln_post",
        "projection.kernel": Source("visual.proj", turned=False),
    }
    for i in range(depth):
        ours, theirs = f"block{i + 1}", f"visual.transformer.resblocks.{i}"
        keys |= {
            f"{ours}.norm1": f"{theirs}.ln_1",
            f"{ours}.norm2": f"{theirs}.ln_2",
            f"{ours}.attention.qkv.kernel": f"{theirs}.attn.in_proj_weight",
            f"{ours}.attention.qkv.bias": f"{theirs}.attn.in_proj_bias",
            f"{ours}.attention.out": f"{theirs}.attn.out_proj",
            f"{ours}.scale1": f"{theirs}.ls_1.gamma",
            f"{ours}.scale2": f"{theirs}.ls_2.gamma",
            f"{ours}.mlp.up": f"{theirs}.mlp.c_fc",
            f"{ours}.mlp.down": f"{theirs}.mlp.c_proj",
        }
    return Known("vit", options, keys, tensors, seen, _UNUSED)
