"""Settings of other libraries for images, as our ``Preprocessing``."""

from collections.abc import Mapping
from typing import Any, get_args

from rdc_jax.models.preprocessing import Interpolation, Preprocessing
from rdc_jax.runtime.errors import UserError

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
HALF = (0.5, 0.5, 0.5)

# Pillow's numbers of its filters.
_FILTERS: tuple[Interpolation, ...] = (
    *("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"),
)
_SQUEEZED_FROM = 384  # ConvNeXt's: larger images are not cropped.


def of_hugging_face(config: Mapping[str, Any], default: Preprocessing) -> Preprocessing:
    """Read ``preprocessor_config.json``.

    Args:
      config: Its content; empty where there is no such file.
      default: What this kind of network is usually trained with.
    """
    if not config:
        return default
    size, resized = config.get("size"), config.get("do_resize", True)
    crop = config.get("crop_size") if config.get("do_center_crop", True) else None
    edge = _edge(size if size is not None else default.edge)
    # A mere number has meant either, by the kind of network.
    keep_aspect = default.keep_aspect
    if isinstance(size, Mapping):
        keep_aspect = "shortest_edge" in size
    if crop is None and (share := config.get("crop_pct")) and keep_aspect:
        crop, edge = edge, edge if edge >= _SQUEEZED_FROM else int(edge / share)
        keep_aspect = crop < _SQUEEZED_FROM
    colours = config.get("do_normalize", True)
    return Preprocessing(
        size=_edge(crop) if crop is not None else edge,
        edge=edge if resized else _edge(crop or edge),
        keep_aspect=keep_aspect,
        interpolation=_FILTERS[config.get("resample", _FILTERS.index("bicubic"))],
        mean=_colours(config.get("image_mean", default.mean) if colours else (0,) * 3),
        std=_colours(config.get("image_std", default.std) if colours else (1,) * 3),
    )


def of_timm(config: Mapping[str, Any]) -> Preprocessing:
    """Read timm's ``pretrained_cfg``; where it is empty, what most networks take."""
    size = (config.get("input_size") or (3, 224, 224))[-1]
    fields = {
        name: _colours(config[name]) for name in ("mean", "std") if config.get(name)
    }
    return Preprocessing(
        size=size,
        edge=int(size / (config.get("crop_pct") or 0.875)),
        keep_aspect=config.get("crop_mode", "center") != "squash",
        interpolation=interpolation(config.get("interpolation") or "bicubic"),
        **fields,
    )


def of_open_clip(config: Mapping[str, Any], size: int) -> Preprocessing:
    """Read ``preprocess_cfg`` of ``open_clip_config.json``."""
    return Preprocessing(
        size=size,
        edge=size,
        keep_aspect=config.get("resize_mode", "shortest") == "shortest",
        interpolation=interpolation(config.get("interpolation") or "bicubic"),
        mean=_colours(config.get("mean") or CLIP_MEAN),
        std=_colours(config.get("std") or CLIP_STD),
    )


def interpolation(name: str) -> Interpolation:
    """Take a filter's name.

    Raises:
      UserError: Pillow has none of that name.
    """
    for known in get_args(Interpolation):
        if name == known:
            return known
    raise UserError(
        f"the config asks for the interpolation {name!r}: known are "
        f"{', '.join(get_args(Interpolation))}"
    )


def _edge(size: Any) -> int:
    if isinstance(size, Mapping):
        return int(size.get("shortest_edge") or size["height"])
    return int(size[0] if isinstance(size, (list, tuple)) else size)


def _colours(values: Any) -> tuple[float, float, float]:
    red, green, blue = map(float, values)
    return red, green, blue
