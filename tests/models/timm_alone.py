"""timm without torchvision, of which there is not always a build that fits torch.

timm imports torchvision for its data pipelines and for a few networks; those of the
tests need none of it. A stand-in takes its place while timm is imported.
"""

import importlib.machinery
import importlib.util
import sys
import types

import pytest

_PARTS = (
    *(".transforms", ".transforms.functional", ".ops", ".ops.misc"),
    *(".models", ".models.feature_extraction", ".datasets", ".io"),
)


class _Anything(type):
    """A class whose attributes are their own names."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


def import_timm():
    """Give timm; the test is skipped where it is not installed."""
    pytest.importorskip("torch")
    if "timm" in sys.modules or importlib.util.find_spec("timm") is None:
        return pytest.importorskip("timm")
    alone = importlib.util.find_spec("torchvision") is None
    for part in ("", *_PARTS) if alone else ():
        _stand_in("torchvision" + part)
    try:
        import timm
    finally:
        for part in ("", *_PARTS) if alone else ():
            del sys.modules["torchvision" + part]
    return timm


def _stand_in(name):
    made = _StandIn(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    made.__path__ = []
    sys.modules[name] = made
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, made)
