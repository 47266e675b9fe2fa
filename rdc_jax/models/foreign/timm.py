"""Networks of timm, and of code whose tensors have the same names (DINO, DINOv2).

Tensors say nearly all of them: their names which parts there are, their shapes the
sizes. ``config.json`` has the rest.
"""

import math
import re
from typing import Any

from rdc_jax.models.foreign import images
from rdc_jax.models.foreign.convert import Known
from rdc_jax.models.foreign.files import Files, Tensors
from rdc_jax.models.preprocessing import Preprocessing
from rdc_jax.runtime.errors import UserError

# Widths whose heads do not have 64 features.
_HEADS = {1152: 16, 1280: 16, 1408: 16, 1664: 16}
# Those of its architectures whose GELU is the approximate one.
_TANH = re.compile(
    r"vit_(base_patch32|so400m_patch16|giantopt_patch16)_siglip"
    r"|vit_large_patch16_siglip_(gap_)?512"
)
_PREFIXES = ("module.", "backbone.", "visual.trunk.")


def recognises(files: Files) -> bool:
    """Tell by the names of tensors."""
    names = files.tensors.without(*_PREFIXES)
    return "patch_embed.proj.weight" in names and "blocks.0.norm1.weight" in names


def read(files: Files) -> Known:
    """Say what network it is, and what its tensors are called."""
    tensors = files.tensors.without(*_PREFIXES)
    name = files.config.get("architecture", "")
    return vit(tensors, name, files.config.get("model_args") or {}, _images(files))


def vit(
    tensors: Tensors, name: str, given: dict[str, Any], seen: Preprocessing
) -> Known:
    """A vision transformer.

    Args:
      tensors: All weights of the network, by name.
      name: Of the architecture, as timm has it; empty for a file of weights alone.
      given: Arguments that it was made with, where they are not those of the name.
      seen: What is done to images.

    Raises:
      UserError: Positions are not those of a square of patches.
    """
    width, _, _, patch = tensors["patch_embed.proj.weight"].shape
    depth = sum(bool(re.fullmatch(r"blocks\.\d+\.norm1\.bias", n)) for n in tensors)
    registers = "reg_token" if "reg_token" in tensors else "register_tokens"
    prefix = int("cls_token" in tensors)
    count = tensors[registers].shape[1] if registers in tensors else 0
    placed, grid = _grid(tensors["pos_embed"].shape[1], prefix, count)
    packed = "mlp.w12" if "blocks.0.mlp.w12.weight" in tensors else "mlp.fc1"
    last = "mlp.w3" if packed == "mlp.w12" else "mlp.fc2"
    hidden = tensors[f"blocks.0.{last}.weight"].shape[1]
    gated = len(tensors[f"blocks.0.{packed}.weight"]) == 2 * hidden
    pool = "class" if prefix else "mean"
    if given.get("global_pool") == "avg" or "fc_norm.weight" in tensors:
        pool = "mean"
    if "attn_pool.latent" in tensors:
        pool = "attention"
    norm_last = "norm.weight" not in tensors
    options: dict[str, Any] = {
        "width": width,
        "depth": depth,
        "heads": given.get("num_heads") or _HEADS.get(width) or max(1, width // 64),
        "patch": patch,
        "grid": grid,
        "hidden": hidden,
        "activation": "swiglu" if gated else _activation(name, given),
        "class_token": bool(prefix),
        "registers": count,
        "placed": placed,
        # timm resamples with antialiasing; DINO does not, but for its registers.
        "antialias": bool(name) or count > 0,
        "pre_norm": "norm_pre.weight" in tensors,
        "layer_scale": "blocks.0.ls1.gamma" in tensors,
        "patch_bias": "patch_embed.proj.bias" in tensors,
        "qkv_bias": "blocks.0.attn.qkv.bias" in tensors,
        "pool": pool,
        "norm_last": norm_last,
        "epsilon": 1e-5 if "_clip_" in name else 1e-6,
    }
    keys: dict[str, Any] = {
        "patches": "patch_embed.proj",
        "class_token": "cls_token",
        "registers": registers,
        "positions": "pos_embed",
        "norm_pre": "norm_pre",
        "norm": "fc_norm" if norm_last else "norm",
        "pool.probe": "attn_pool.latent",
        "pool.query": "attn_pool.q",
        "pool.key_value": "attn_pool.kv",
        "pool.out": "attn_pool.proj",
        "pool.norm": "attn_pool.norm",
        "pool.mlp.up": "attn_pool.mlp.fc1",
        "pool.mlp.down": "attn_pool.mlp.fc2",
    }
    for i in range(depth):
        ours, theirs = f"block{i + 1}", f"blocks.{i}"
        keys |= {
            f"{ours}.norm1": f"{theirs}.norm1",
            f"{ours}.norm2": f"{theirs}.norm2",
            f"{ours}.attention.qkv": f"{theirs}.attn.qkv",
            f"{ours}.attention.out": f"{theirs}.attn.proj",
            f"{ours}.scale1": f"{theirs}.ls1.gamma",
            f"{ours}.scale2": f"{theirs}.ls2.gamma",
            f"{ours}.mlp.up": f"{theirs}.{packed}",
            f"{ours}.mlp.down": f"{theirs}.{last}",
        }
    return Known("vit", options, keys, tensors, seen, r"head\.|mask_token$|fc\.")


def _images(files: Files) -> Preprocessing:
    config = files.config.get("pretrained_cfg") or files.config
    return images.of_timm(config)


def _activation(name: str, given: dict[str, Any]) -> str:
    if (asked := given.get("act_layer")) in ("gelu", "gelu_tanh", "quick_gelu", "silu"):
        return str(asked)
    if "quickgelu" in name:
        return "quick_gelu"
    return "gelu_tanh" if _TANH.match(name) else "gelu"


def _grid(positions: int, prefix: int, registers: int) -> tuple[int, int]:
    """How many first tokens have positions, and the patches a side."""
    for placed in (prefix + registers, prefix, 0):
        side = math.isqrt(positions - placed)
        if side * side == positions - placed:
            return placed, side
    raise UserError(f"{positions} positions are no square of patches")
