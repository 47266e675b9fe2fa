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
