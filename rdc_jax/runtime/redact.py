"""Settings as they may be published: without private places."""

import re
from collections.abc import Mapping
from typing import Any

# Fields whose value is a place on somebody's machine, whatever it looks like.
_PLACES = {
    *("data_dir", "cache_dir", "workdir"),
    *("checkpoint", "checkpoints", "init_from", "plugins"),
}
_ABSOLUTE = re.compile(r"^(/|~|\.\./|\\\\|[A-Za-z]:[\\/])")


def publishable(config: Mapping[str, Any]) -> dict[str, Any]:
    """Hide the places in a config, however deep.

    >>> publishable({"way": 5, "pretrain": {"data_dir": "/home/ann/data"}})
    {'way': 5, 'pretrain': {'data_dir': '…/data'}}
    """
    shown = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            value = publishable(value)
        shown[name] = hide_places(name, value) if isinstance(value, str) else value
    return shown


def hide_places(field: str, value: str) -> str:
    """Keep the last part of a path, and texts that are no path as they are.

    >>> hide_places("data_dir", "/home/ann/data")
    '…/data'
    >>> hide_places("datasets", "cub,/home/ann/birds,tfds:eurosat/rgb")
    'cub,…/birds,tfds:eurosat/rgb'
    """
    parts = value.split(",")
    private = [_ABSOLUTE.match(part.strip()) is not None for part in parts]
    if field in _PLACES and not any(private) and re.search(r"[\\/]", value):
        private = [True for _ in parts]
    names = [re.split(r"[\\/]", part.strip().rstrip("\\/"))[-1] for part in parts]
    shown = zip(private, names, parts, strict=True)
    return ",".join(f"…/{name}" if hide else part for hide, name, part in shown)
