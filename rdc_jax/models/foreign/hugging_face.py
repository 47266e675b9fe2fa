"""Networks of Hugging Face's transformers, by the ``model_type`` of ``config.json``."""

import dataclasses
from collections.abc import Callable
from typing import Any

from rdc_jax.models.foreign import images
from rdc_jax.models.foreign.convert import Keys, Known, Source
from rdc_jax.models.foreign.files import Files, Tensors
from rdc_jax.models.preprocessing import Preprocessing
from rdc_jax.runtime.errors import UserError

_ACTIVATIONS = {
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "gelu": "gelu",
    "silu": "silu",
    "relu": "relu",
}
_CROPPED = Preprocessing(size=224, edge=256, keep_aspect=True, interpolation="bicubic")
_CLIP = Preprocessing(
    size=224,
    edge=224,
    keep_aspect=True,
    interpolation="bicubic",
    mean=images.CLIP_MEAN,
    std=images.CLIP_STD,
)
_HALVES: dict[str, Any] = {"mean": images.HALF, "std": images.HALF}
_SIGLIP = Preprocessing(size=224, edge=224, interpolation="bicubic", **_HALVES)
_VIT = Preprocessing(size=224, edge=224, **_HALVES)


def recognises(files: Files) -> bool:
    """Tell by the config."""
    return "model_type" in files.config


def read(files: Files) -> Known:
    """Say what network it is, and what its tensors are called.

    Raises:
      UserError: It is of no known kind.
    """
    kind = files.config["model_type"]
    if kind not in _KINDS:
        raise UserError(
            f"{files.path} is a {kind}: known are {', '.join(_KINDS)}, resnet, "
            "convnext; docs/own_model.md says how to use others"
        )
    return _KINDS[kind](files)


def _dinov2(files: Files) -> Known:
    config, tensors = files.config, files.tensors.without("dinov2_with_registers.")
    tensors = tensors.without("dinov2.")
    options = _options(config)
    hidden = int(config["hidden_size"] * config.get("mlp_ratio", 4))
    if config.get("use_swiglu_ffn"):
        hidden = (int(hidden * 2 / 3) + 7) // 8 * 8
        options["activation"] = "swiglu"
    registers = config.get("num_register_tokens", 0)
    options |= {"hidden": hidden, "layer_scale": True, "registers": registers}
    options["antialias"] = registers > 0
    keys: dict[str, Any] = {**_embeddings("cls_token"), "norm": "layernorm"}
    keys["registers"] = "embeddings.register_tokens"
    first, last = ("fc1", "fc2")
    if config.get("use_swiglu_ffn"):
        first, last = ("weights_in", "weights_out")
    for ours, theirs in _blocks(options["depth"], "encoder.layer"):
        keys |= {
            **_attention(ours, f"{theirs}.attention"),
            f"{ours}.norm1": f"{theirs}.norm1",
            f"{ours}.norm2": f"{theirs}.norm2",
            f"{ours}.scale1": f"{theirs}.layer_scale1.lambda1",
            f"{ours}.scale2": f"{theirs}.layer_scale2.lambda1",
            f"{ours}.mlp.up": f"{theirs}.mlp.{first}",
            f"{ours}.mlp.down": f"{theirs}.mlp.{last}",
        }
    unused = r"embeddings\.mask_token|classifier\."
    seen = images.of_hugging_face(files.processor, _CROPPED)
    return Known("vit", options, keys, tensors, seen, unused)


def _vit(files: Files) -> Known:
    config, tensors = files.config, files.tensors.without("vit.")
    options = {**_options(config), "hidden": config["intermediate_size"]}
    keys: dict[str, Any] = {**_embeddings("cls_token"), "norm": "layernorm"}
    for ours, theirs in _blocks(options["depth"], "encoder.layer"):
        keys |= {
            **_attention(ours, f"{theirs}.attention"),
            f"{ours}.norm1": f"{theirs}.layernorm_before",
            f"{ours}.norm2": f"{theirs}.layernorm_after",
            f"{ours}.mlp.up": f"{theirs}.intermediate.dense",
            f"{ours}.mlp.down": f"{theirs}.output.dense",
        }
    unused = r"pooler\.|classifier\.|decoder\.|embeddings\.mask_token"
    seen = images.of_hugging_face(files.processor, _at(config, _VIT))
    return Known("vit", options, keys, tensors, seen, unused)


def _clip(files: Files) -> Known:
    config, tensors = _vision(files)
    options, keys = _towers(config)
    options |= {"pre_norm": True, "patch_bias": False}
    keys["class_token"] = "embeddings.class_embedding"
    keys["norm_pre"] = "pre_layrnorm"  # Their spelling.
    projection = "visual_projection"
    if f"{projection}.weight" in tensors:
        # The config of the whole model overrules that of its vision tower.
        options["projection"] = files.config["projection_dim"]
        keys["projection"] = projection
    seen = images.of_hugging_face(files.processor, _at(config, _CLIP))
    return Known("vit", options, keys, tensors, seen, _TEXT)


def _siglip(files: Files) -> Known:
    config, tensors = _vision(files)
    options, keys = _towers(config)
    headed = config.get("vision_use_head", True)
    options |= {"class_token": False, "placed": 0}
    options["pool"] = "attention" if headed else "mean"
    keys |= {
        "pool.probe": "head.probe",
        "pool.query.kernel": Source("head.attention.in_proj_weight", (0, 1)),
        "pool.query.bias": Source("head.attention.in_proj_bias", (0, 1)),
        "pool.key_value.kernel": Source("head.attention.in_proj_weight", (1, 3)),
        "pool.key_value.bias": Source("head.attention.in_proj_bias", (1, 3)),
        "pool.out": "head.attention.out_proj",
        "pool.norm": "head.layernorm",
        "pool.mlp.up": "head.mlp.fc1",
        "pool.mlp.down": "head.mlp.fc2",
    }
    seen = images.of_hugging_face(files.processor, _at(config, _SIGLIP))
    return Known("vit", options, keys, tensors, seen, _TEXT)


_TEXT = r"text_model\.|text_projection\.|logit_|embeddings\.position_ids|classifier\."


def _vision(files: Files) -> tuple[dict[str, Any], Tensors]:
    """Config and tensors of the tower that sees images."""
    config = {**_TOWER, **files.config.get("vision_config", files.config)}
    return config, files.tensors.without("vision_model.")


# Configs on the hub leave defaults out.
_TOWER = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
}


def _towers(config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options and keys that CLIP and SigLIP share."""
    siglip = config.get("model_type", "").startswith("siglip")
    defaults = {
        "patch_size": 16 if siglip else 32,
        "hidden_act": "gelu_pytorch_tanh" if siglip else "quick_gelu",
        "layer_norm_eps": 1e-6 if siglip else 1e-5,
    }
    config = {**defaults, **config}
    options = {**_options(config), "hidden": config["intermediate_size"]}
    keys: dict[str, Any] = {
        "patches": "embeddings.patch_embedding",
        "positions": "embeddings.position_embedding.weight",
        "norm": "post_layernorm",
    }
    for ours, theirs in _blocks(options["depth"], "encoder.layers"):
        heads = tuple(f"{theirs}.self_attn.{name}_proj" for name in "qkv")
        keys |= {
            f"{ours}.attention.qkv": heads,
            f"{ours}.attention.out": f"{theirs}.self_attn.out_proj",
            f"{ours}.norm1": f"{theirs}.layer_norm1",
            f"{ours}.norm2": f"{theirs}.layer_norm2",
            f"{ours}.mlp.up": f"{theirs}.mlp.fc1",
            f"{ours}.mlp.down": f"{theirs}.mlp.fc2",
        }
    return options, keys


def _options(config: dict[str, Any]) -> dict[str, Any]:
    """What all vision transformers have."""
    patch, size = _side(config["patch_size"]), _side(config.get("image_size", 224))
    activation = config.get("hidden_act", "gelu")
    if activation not in _ACTIVATIONS:
        raise UserError(
            f"the config has the activation {activation!r}: known are "
            f"{', '.join(_ACTIVATIONS)}"
        )
    return {
        "width": config["hidden_size"],
        "depth": config["num_hidden_layers"],
        "heads": config["num_attention_heads"],
        "patch": patch,
        "grid": size // patch,
        "activation": _ACTIVATIONS[activation],
        "qkv_bias": config.get("qkv_bias", True),
        "epsilon": config.get("layer_norm_eps", 1e-6),
    }


def _side(size: Any) -> int:
    """Of a square that may be given by both sides."""
    return int(size[0] if isinstance(size, (list, tuple)) else size)


def _at(config: dict[str, Any], usual: Preprocessing) -> Preprocessing:
    """What networks of a kind take, at the size of this one."""
    size = _side(config.get("image_size", usual.size))
    return dataclasses.replace(usual, size=size, edge=size)


def _embeddings(class_token: str) -> Keys:
    return {
        "patches": "embeddings.patch_embeddings.projection",
        "positions": "embeddings.position_embeddings",
        "class_token": f"embeddings.{class_token}",
    }


def _blocks(depth: int, theirs: str) -> list[tuple[str, str]]:
    """Names of the blocks, ours and theirs."""
    return [(f"block{i + 1}", f"{theirs}.{i}") for i in range(depth)]


def _attention(ours: str, theirs: str) -> Keys:
    parts = tuple(f"{theirs}.attention.{name}" for name in ("query", "key", "value"))
    return {
        f"{ours}.attention.qkv": parts,
        f"{ours}.attention.out": f"{theirs}.output.dense",
    }


_KINDS: dict[str, Callable[[Files], Known]] = {
    "dinov2": _dinov2,
    "dinov2_with_registers": _dinov2,
    "vit": _vit,
    "clip": _clip,
    "clip_vision_model": _clip,
    "siglip": _siglip,
    "siglip_vision_model": _siglip,
}
