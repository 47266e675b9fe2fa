"""Convolutional networks: of timm, torchvision, transformers and the few-shot field.

The library is told by the names of the tensors, the sizes by their shapes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from rdc_jax.models.foreign import images
from rdc_jax.models.foreign.convert import Known
from rdc_jax.models.foreign.files import Files, Tensors
from rdc_jax.models.preprocessing import FIELD, Preprocessing

_PREFIXES = ("module.", "feature.", "encoder_q.", "backbone.")
_TORCHVISION = Preprocessing(size=224, edge=256, keep_aspect=True)
_CLASSIFIER = r"(fc|head\.fc|classifier|linear)\."


class Names(NamedTuple):
    """What a library calls the tensors of a residual network.

    Attributes:
      stem: The first convolution and its norm.
      block: Of stage s and block j, counted from 0.
      conv: The k-th convolution of a block, from 1, and its norm.
      shortcut: Its convolution and norm.
    """

    stem: tuple[str, str]
    block: Callable[[int, int], str]
    conv: Callable[[int], tuple[str, str]]
    shortcut: tuple[str, str]


_PLAIN = Names(
    ("conv1", "bn1"),
    lambda s, j: f"layer{s + 1}.{j}",
    lambda k: (f"conv{k}", f"bn{k}"),
    ("downsample.0", "downsample.1"),
)
_HUGGING_FACE = Names(
    ("embedder.embedder.convolution", "embedder.embedder.normalization"),
    lambda s, j: f"encoder.stages.{s}.layers.{j}",
    lambda k: (f"layer.{k - 1}.convolution", f"layer.{k - 1}.normalization"),
    ("shortcut.convolution", "shortcut.normalization"),
)


class ConvNeXtNames(NamedTuple):
    """What a library calls the tensors of a ConvNeXt.

    Attributes:
      stem: The first convolution and its norm.
      halve: The norm and the convolution before stage s.
      block: Of stage s and block j, counted from 0.
      parts: Convolution, norm, the two layers of the MLP, and the scale.
      norm: The last one.
    """

    stem: tuple[str, str]
    halve: Callable[[int], tuple[str, str]]
    block: Callable[[int, int], str]
    parts: tuple[str, str, str, str, str]
    norm: str


_CONVNEXTS = (
    ConvNeXtNames(  # timm
        ("stem.0", "stem.1"),
        lambda s: (f"stages.{s}.downsample.0", f"stages.{s}.downsample.1"),
        lambda s, j: f"stages.{s}.blocks.{j}",
        ("conv_dw", "norm", "mlp.fc1", "mlp.fc2", "gamma"),
        "head.norm",
    ),
    ConvNeXtNames(  # torchvision
        ("features.0.0", "features.0.1"),
        lambda s: (f"features.{2 * s}.0", f"features.{2 * s}.1"),
        lambda s, j: f"features.{2 * s + 1}.{j}",
        ("block.0", "block.2", "block.3", "block.5", "layer_scale"),
        "classifier.0",
    ),
    ConvNeXtNames(  # transformers
        ("embeddings.patch_embeddings", "embeddings.layernorm"),
        lambda s: (
            f"encoder.stages.{s}.downsampling_layer.0",
            f"encoder.stages.{s}.downsampling_layer.1",
        ),
        lambda s, j: f"encoder.stages.{s}.layers.{j}",
        ("dwconv", "layernorm", "pwconv1", "pwconv2", "layer_scale_parameter"),
        "layernorm",
    ),
)


def recognises(files: Files) -> bool:
    """Tell by the names of tensors."""
    return _reader(_tensors(files)) is not None


def read(files: Files) -> Known:
    """Say what network it is, and what its tensors are called."""
    tensors = _tensors(files)
    reader = _reader(tensors)
    assert reader is not None
    return reader(tensors, files)


def _tensors(files: Files) -> Tensors:
    return files.tensors.without(*_PREFIXES, "resnet.", "convnext.")


def _reader(tensors: Tensors) -> Callable[[Tensors, Files], Known] | None:
    if "block1.layer.0.bn1.weight" in tensors and "conv1.weight" in tensors:
        return _wide_resnet
    for names in (_PLAIN, _HUGGING_FACE):
        first = f"{names.block(0, 0)}.{names.conv(1)[0]}.weight"
        if first in tensors and f"{names.stem[0]}.weight" in tensors:
            return lambda tensors, files: _resnet(tensors, files, names)
    if {"layer1.0.conv3.weight", "layer4.0.downsample.0.weight"} <= tensors.keys():
        return _resnet12
    for found in _CONVNEXTS:
        if f"{found.block(0, 0)}.{found.parts[0]}.weight" in tensors:
            return lambda tensors, files: _convnext(tensors, files, found)
    return None


def _resnet(tensors: Tensors, files: Files, names: Names) -> Known:
    depths = _depths(tensors, lambda s, j: f"{names.block(s, j)}.{names.conv(1)[0]}")
    last = 3 if f"{names.block(0, 0)}.{names.conv(3)[0]}.weight" in tensors else 2
    ends = [f"{names.block(s, 0)}.{names.conv(last)[0]}" for s in range(len(depths))]
    options: dict[str, Any] = {
        "depths": depths,
        "widths": _lengths(tensors, ends),
        "bottleneck": last == 3,
        "early": files.config.get("downsample_in_bottleneck", False),
        "stem": len(tensors[f"{names.stem[0]}.weight"]),
    }
    keys: dict[str, Any] = dict(
        zip(("stem_conv", "stem_norm"), names.stem, strict=True)
    )
    for ours, theirs in _blocks(depths, names.block):
        for k in range(1, last + 1):
            conv, norm = names.conv(k)
            keys[f"{ours}.conv{k}"] = f"{theirs}.{conv}"
            keys[f"{ours}.norm{k}"] = f"{theirs}.{norm}"
        conv, norm = names.shortcut
        keys[f"{ours}.shortcut_conv"] = f"{theirs}.{conv}"
        keys[f"{ours}.shortcut_norm"] = f"{theirs}.{norm}"
    return Known("resnet", options, keys, tensors, _images(files), _CLASSIFIER)


def _resnet12(tensors: Tensors, files: Files) -> Known:
    del files
    keys: dict[str, Any] = {}
    for i in range(1, 5):
        block, theirs = f"block{i}", f"layer{i}.0"
        for k in (1, 2, 3):
            keys[f"{block}.conv{k}"] = f"{theirs}.conv{k}"
            keys[f"{block}.norm{k}"] = f"{theirs}.bn{k}"
        keys[f"{block}.shortcut_conv"] = f"{theirs}.downsample.0"
        keys[f"{block}.shortcut_norm"] = f"{theirs}.downsample.1"
    return Known("resnet12", {}, keys, tensors, FIELD, _CLASSIFIER)


def _wide_resnet(tensors: Tensors, files: Files) -> Known:
    del files

    def block(s: int, j: int) -> str:
        return f"block{s + 1}.layer.{j}"

    depths = _depths(tensors, lambda s, j: f"{block(s, j)}.conv1")
    options = {
        "depth": 6 * depths[0] + 4,
        "widen": len(tensors["block1.layer.0.conv1.weight"]) // 16,
    }
    keys: dict[str, Any] = {"stem_conv": "conv1", "norm": "bn1"}
    for ours, theirs in _blocks(depths, block):
        for k in (1, 2):
            keys[f"{ours}.conv{k}"] = f"{theirs}.conv{k}"
            keys[f"{ours}.norm{k}"] = f"{theirs}.bn{k}"
        keys[f"{ours}.shortcut_conv"] = f"{theirs}.convShortcut"
    return Known("wrn_28_10", options, keys, tensors, FIELD, _CLASSIFIER)


def _convnext(tensors: Tensors, files: Files, names: ConvNeXtNames) -> Known:
    conv, norm, up, down, scale = names.parts
    depths = _depths(tensors, lambda s, j: f"{names.block(s, j)}.{conv}")
    starts = [f"{names.block(s, 0)}.{conv}" for s in range(len(depths))]
    options: dict[str, Any] = {
        "depths": depths,
        "widths": _lengths(tensors, starts),
        "layer_scale": f"{names.block(0, 0)}.{scale}" in tensors,
        "epsilon": files.config.get("layer_norm_eps", 1e-6),
    }
    keys: dict[str, Any] = {"norm": names.norm}
    keys["stem_conv"], keys["stem_norm"] = names.stem
    for s in range(1, len(depths)):
        keys[f"halve{s}_norm"], keys[f"halve{s}_conv"] = names.halve(s)
    for ours, theirs in _blocks(depths, names.block):
        keys |= {
            f"{ours}.conv": f"{theirs}.{conv}",
            f"{ours}.norm": f"{theirs}.{norm}",
            f"{ours}.up": f"{theirs}.{up}",
            f"{ours}.down": f"{theirs}.{down}",
            f"{ours}.scale": f"{theirs}.{scale}",
        }
    unused = r"head\.fc\.|classifier\.(2\.|weight|bias)"
    return Known("convnext", options, keys, tensors, _images(files), unused)


def _lengths(tensors: Tensors, convs: list[str]) -> tuple[int, ...]:
    """Channels that convolutions give."""
    return tuple(len(tensors[f"{conv}.weight"]) for conv in convs)


def _depths(tensors: Tensors, conv: Callable[[int, int], str]) -> tuple[int, ...]:
    """Blocks of each stage, by the names of their first convolutions."""
    depths: list[int] = []
    while f"{conv(len(depths), 0)}.weight" in tensors:
        stage, j = len(depths), 1
        while f"{conv(stage, j)}.weight" in tensors:
            j += 1
        depths.append(j)
    return tuple(depths)


def _blocks(
    depths: tuple[int, ...], name: Callable[[int, int], str]
) -> list[tuple[str, str]]:
    """Names of the blocks, ours and theirs."""
    theirs = [name(s, j) for s, depth in enumerate(depths) for j in range(depth)]
    return [(f"block{i}", block) for i, block in enumerate(theirs, 1)]


def _images(files: Files) -> Preprocessing:
    if "model_type" in files.config:
        usual = Preprocessing(
            size=224, edge=256, keep_aspect=True, interpolation="bicubic"
        )
        return images.of_hugging_face(files.processor, usual)
    if not files.config:
        return _TORCHVISION
    return images.of_timm(files.config.get("pretrained_cfg") or files.config)
