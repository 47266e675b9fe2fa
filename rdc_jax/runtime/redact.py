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
    return {name: _publishable(name, value) for name, value in config.items()}


def hide_places(field: str, value: str) -> str:
    """Keep the last part of a path, and texts that are no path as they are.

    >>> hide_places("data_dir", "/home/ann/data")
    '…/data'
    >>> hide_places("datasets", "cub,/home/ann/birds,tfds:eurosat/rgb")
    'cub,…/birds,tfds:eurosat/rgb'
    """
    parts = value.split(",")
    if not any(_ABSOLUTE.match(part.strip()) for part in parts):
        if field not in _PLACES or not re.search(r"[\\/]", value):
            return value
        return ",".join(_last(part) for part in parts)
    return ",".join(_last(p) if _ABSOLUTE.match(p.strip()) else p for p in parts)


def _publishable(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return publishable(value)
    return hide_places(name, value) if isinstance(value, str) else value


def _last(path: str) -> str:
    return "…/" + re.split(r"[\\/]", path.strip().rstrip("\\/"))[-1]
