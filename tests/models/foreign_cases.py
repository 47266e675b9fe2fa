"""Tiny networks of other libraries with random weights, saved by the library itself."""

import functools
import json

import numpy as np
import pytest
from models import timm_alone

VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 7,
}
TOWER = {**VIT, "intermediate_size": 48}
TEXT = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "vocab_size": 50000,
}


def randomise(network):
    """Give every weight a size that matters, and batch norms some statistics."""
    import torch

    torch.manual_seed(0)
    for name, value in network.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2)
        elif name.endswith("running_mean"):
            value.normal_(0, 0.3)
        elif value.is_floating_point():
            flat = value.ndim < 2 or 1 in value.shape[:2]
            fan = value[0].numel() if value.ndim > 1 else 1
            value.copy_(torch.randn_like(value) * (0.3 if flat else 1.5 * fan**-0.5))
            if flat:
                value.add_(0.5)
    return network.eval()


def _hugging_face(folder, make):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    network, features = make(transformers)
    randomise(network).save_pretrained(folder)
    return functools.partial(_call, features)


def _timm(folder, arch, **arguments):
    timm = timm_alone.import_timm()
    from safetensors.torch import save_file

    network = timm.create_model(arch, num_classes=0, **arguments)
    folder.mkdir(exist_ok=True)
    save_file(randomise(network).state_dict(), folder / "model.safetensors")
    config = {
        "architecture": arch,
        "model_args": {
            name: value
            for name, value in arguments.items()
            if name in ("num_heads", "global_pool")
        },
        "pretrained_cfg": {
            "input_size": [3, 28, 28],
            "crop_pct": 0.9,
            "interpolation": "bicubic",
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    return functools.partial(_call, network)


def _call(function, images):
    import torch

    with torch.no_grad():
        out = function(torch.tensor(images).permute(0, 3, 1, 2))
    return out.numpy().reshape(len(images), -1)


def _dinov2(t, **options):
    network = t.Dinov2Model(t.Dinov2Config(**VIT, **options))
    return network, lambda x: network(x).pooler_output


def _registers(t):
    network = t.Dinov2WithRegistersModel(t.Dinov2WithRegistersConfig(**VIT))
    return network, lambda x: network(x).pooler_output


def _vit(t):
    network = t.ViTModel(t.ViTConfig(**TOWER), add_pooling_layer=False)
    big = {"interpolate_pos_encoding": True}
    return network, lambda x: network(x, **big).last_hidden_state[:, 0]


def _clip_tower(t):
    config = t.CLIPVisionConfig(**TOWER, projection_dim=24)
    network = t.CLIPVisionModelWithProjection(config)
    return network, lambda x: network(x, interpolate_pos_encoding=True).image_embeds


def _clip(t):
    config = t.CLIPConfig(text_config=TEXT, vision_config=TOWER, projection_dim=24)
    network = t.CLIPModel(config)

    def features(x):
        seen = network.vision_model(x, interpolate_pos_encoding=True).pooler_output
        return network.visual_projection(seen)

    return network, features


def _siglip(t):
    network = t.SiglipModel(t.SiglipConfig(text_config=TEXT, vision_config=TOWER))

    def features(x):
        return network.vision_model(x, interpolate_pos_encoding=True).pooler_output

    return network, features


def _resnet(t, **options):
    sizes = {"embedding_size": 8, "depths": [1, 2, 1]}
    network = t.ResNetModel(t.ResNetConfig(**sizes, **options))
    return network, lambda x: network(x).pooler_output


def _convnext(t):
    config = t.ConvNextConfig(hidden_sizes=[8, 16, 24], depths=[1, 2, 1], num_stages=3)
    network = t.ConvNextModel(config)
    return network, lambda x: network(x).pooler_output


def _of_the_field(folder, network):
    """A file of weights alone, as the few-shot field's code saves it."""
    import torch

    torch.save({"state": randomise(network).state_dict()}, folder / "best.pth")
    return functools.partial(_call, network)


def _wide_resnet(folder):
    pytest.importorskip("torch")
    from models.torch_wide import WideResNet

    return _of_the_field(folder, WideResNet(depth=10, widen=1))


def _resnet12(folder):
    pytest.importorskip("torch")
    from models.torch_wide import ResNet12

    return _of_the_field(folder, ResNet12())


def _state(make):
    """Tensors of a network of transformers, to be saved under other names."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    network, features = make(transformers)
    return randomise(network).state_dict(), functools.partial(_call, features)


def _joined(state, prefix, names, leaf):
    import torch

    return torch.cat([state[f"{prefix}.{name}_proj.{leaf}"] for name in names])


def _open_clip(folder):
    """CLIP's tower as open_clip saves it."""
    from safetensors.torch import save_file

    state, features = _state(_clip_tower)
    state = {name.removeprefix("vision_model."): x for name, x in state.items()}
    made = {
        "visual.class_embedding": state["embeddings.class_embedding"],
        "visual.positional_embedding": state["embeddings.position_embedding.weight"],
        "visual.conv1.weight": state["embeddings.patch_embedding.weight"],
        "visual.proj": state["visual_projection.weight"].T,
        "logit_scale": state["post_layernorm.bias"][0],
        "transformer.resblocks.0.ln_1.weight": state["post_layernorm.bias"],
    }
    for leaf in ("weight", "bias"):
        made[f"visual.ln_pre.{leaf}"] = state[f"pre_layrnorm.{leaf}"]
        made[f"visual.ln_post.{leaf}"] = state[f"post_layernorm.{leaf}"]
        for i in range(2):
            old, new = f"encoder.layers.{i}", f"visual.transformer.resblocks.{i}"
            mixed = _joined(state, f"{old}.self_attn", "qkv", leaf)
            made[f"{new}.attn.in_proj_{leaf}"] = mixed
            for theirs, ours in {
                "ln_1": "layer_norm1",
                "ln_2": "layer_norm2",
                "attn.out_proj": "self_attn.out_proj",
                "mlp.c_fc": "mlp.fc1",
                "mlp.c_proj": "mlp.fc2",
            }.items():
                made[f"{new}.{theirs}.{leaf}"] = state[f"{old}.{ours}.{leaf}"]
    tensors = {name: x.clone().contiguous() for name, x in made.items()}
    save_file(tensors, folder / "open_clip_model.safetensors")
    tower = {"image_size": 28, "layers": 2, "width": 32, "patch_size": 7}
    model = {"quick_gelu": True, "vision_cfg": {**tower, "head_width": 16}}
    config = {"model_cfg": model, "preprocess_cfg": {"mean": [0.5, 0.5, 0.5]}}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    return features


def _dinov2_file(folder):
    """DINOv2 with registers as its authors save it: a file of weights alone."""
    import torch

    def make(t):
        config = t.Dinov2WithRegistersConfig(
            **{**VIT, "hidden_size": 64, "num_attention_heads": 1}
        )
        network = t.Dinov2WithRegistersModel(config)
        return network, lambda x: network(x).pooler_output

    state, features = _state(make)
    made = {
        "cls_token": state["embeddings.cls_token"],
        "register_tokens": state["embeddings.register_tokens"],
        "mask_token": state["embeddings.mask_token"],
        "pos_embed": state["embeddings.position_embeddings"],
    }
    for leaf in ("weight", "bias"):
        patches = state[f"embeddings.patch_embeddings.projection.{leaf}"]
        made[f"patch_embed.proj.{leaf}"] = patches
        made[f"norm.{leaf}"] = state[f"layernorm.{leaf}"]
        for i in range(2):
            old, new = f"encoder.layer.{i}", f"blocks.{i}"
            mixed = _joined(state, f"{old}.attention", "qkv", leaf)
            made[f"{new}.attn.qkv.{leaf}"] = mixed
            made[f"{new}.attn.proj.{leaf}"] = state[f"{old}.attention.o_proj.{leaf}"]
            for part in ("norm1", "norm2", "mlp.fc1", "mlp.fc2"):
                made[f"{new}.{part}.{leaf}"] = state[f"{old}.{part}.{leaf}"]
            for k in (1, 2):
                scale = state[f"{old}.layer_scale{k}.lambda1"]
                made[f"{new}.ls{k}.gamma"] = scale
    torch.save(made, folder / "best.pth")
    return features


TIMM = {"img_size": 28, "patch_size": 7, "embed_dim": 32, "depth": 2, "num_heads": 2}
MADE = {
    "dinov2": lambda f: _hugging_face(f, _dinov2),
    "dinov2 giant": lambda f: _hugging_face(
        f, functools.partial(_dinov2, use_swiglu_ffn=True)
    ),
    "dinov2_with_registers": lambda f: _hugging_face(f, _registers),
    "vit": lambda f: _hugging_face(f, _vit),
    "clip": lambda f: _hugging_face(f, _clip),
    "clip_vision_model": lambda f: _hugging_face(f, _clip_tower),
    "siglip": lambda f: _hugging_face(f, _siglip),
    "resnet": lambda f: _hugging_face(
        f,
        functools.partial(_resnet, hidden_sizes=[16, 32, 64], layer_type="bottleneck"),
    ),
    "resnet basic": lambda f: _hugging_face(
        f, functools.partial(_resnet, hidden_sizes=[8, 8, 16], layer_type="basic")
    ),
    "convnext": lambda f: _hugging_face(f, _convnext),
    "open_clip": _open_clip,
    "dinov2 file": _dinov2_file,
    "wide resnet": _wide_resnet,
    "resnet12": _resnet12,
    "timm resnet50": lambda f: _timm(f, "resnet50", layers=[1, 1, 2, 1]),
    "timm resnet34": lambda f: _timm(f, "resnet34", layers=[1, 2, 1, 1]),
    "timm convnext": lambda f: _timm(
        f, "convnext_atto", depths=[1, 1, 2, 1], dims=[8, 12, 16, 24]
    ),
    "timm vit": lambda f: _timm(f, "vit_tiny_patch16_224", **TIMM, **DYNAMIC),
    "timm dinov2 registers": lambda f: _timm(
        f, "vit_small_patch14_reg4_dinov2", **TIMM, **DYNAMIC
    ),
    "timm dinov2 giant": lambda f: _timm(
        f, "vit_giant_patch14_dinov2", **TIMM, **DYNAMIC
    ),
    "timm clip": lambda f: _timm(
        f, "vit_base_patch16_clip_quickgelu_224", **TIMM, **DYNAMIC
    ),
    "timm siglip": lambda f: _timm(f, "vit_base_patch16_siglip_224", **TIMM, **DYNAMIC),
    "timm siglip tanh": lambda f: _timm(
        f, "vit_so400m_patch16_siglip_256", **TIMM, **DYNAMIC
    ),
    "timm mean": lambda f: _timm(
        f, "vit_tiny_patch16_224", **TIMM, **DYNAMIC, global_pool="avg"
    ),
}
DYNAMIC = {"dynamic_img_size": True}


def images(size):
    """Normalised images."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, size, size, 3)).astype(np.float32)
