"""From another library's tensors to the variables of one of our networks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import traverse_util

from rdc_jax.models.backbones import create
from rdc_jax.models.foreign.files import Files, Tensors
from rdc_jax.models.preprocessing import Preprocessing
from rdc_jax.runtime.errors import UserError

Variables = dict[str, Any]

# What torch calls the leaves of a module.
_LEAVES = {
    ("params", "kernel"): "weight",
    ("params", "scale"): "weight",
    ("params", "bias"): "bias",
    ("batch_stats", "mean"): "running_mean",
    ("batch_stats", "var"): "running_var",
}
_SHOWN = 3  # Names in a message.


class Source(NamedTuple):
    """Where a variable comes from, if not from a module of another name.

    Attributes:
      name: The tensor's name in the file.
      thirds: Which of its rows: ``(1, 3)`` is the second and the last third.
      turned: Whether it is ``[out, in]``, as torch has kernels.
    """

    name: str
    thirds: tuple[int, int] | None = None
    turned: bool = True


Keys = Mapping[str, str | tuple[str, ...] | Source]
"""By our names of modules: torch's, several for those of which one is made; by our
names of variables, with dots: where they come from."""


class Known(NamedTuple):
    """A network of another library, in our words.

    Attributes:
      arch: See ``rdc_jax.models.BACKBONES``.
      options: Fields of the network's class.
      keys: What each of its variables is called there.
      tensors: Its weights, under those names.
      preprocessing: What is done to its images.
      unused: Pattern of names of tensors that features do not need.
    """

    arch: str
    options: dict[str, Any]
    keys: Keys
    tensors: Tensors
    preprocessing: Preprocessing
    unused: str = ""


def convert(known: Known, files: Files) -> tuple[Variables, dict[str, Any]]:
    """Make variables and metadata as ``read_checkpoint`` gives them.

    Raises:
      UserError: Tensors are missing, unknown, or of another shape.
    """
    leaves: dict[tuple[str, ...], np.ndarray] = {}
    used: set[str] = set()
    missing: list[str] = []
    for (collection, *place), want in _leaves(known):
        names, value = _value(known, collection, tuple(place))
        if value is None:
            missing += [name for name in names if name not in known.tensors]
            continue
        used.update(names)
        if value.size != want.size or value.squeeze().shape != _squeezed(want.shape):
            raise UserError(
                f"{files.path}: {names[0]} is {known.tensors[names[0]].shape}, which "
                f"is not that of the {known.arch} that its config describes"
            )
        whole = np.ascontiguousarray(value.reshape(want.shape), np.float32)
        leaves[(collection, "backbone", *place)] = whole
    if missing:
        raise UserError(
            f"{files.path} lacks {_some(missing)} of a {known.arch}: it is another "
            "network, or the file is incomplete"
        )
    unused = re.compile(known.unused) if known.unused else None
    extra = [
        name
        for name in known.tensors
        if name not in used
        and not name.endswith("num_batches_tracked")
        and not (unused and unused.match(name))
    ]
    if extra:
        raise UserError(
            f"{files.path} has {_some(extra)}, which a {known.arch} has no place for: "
            "it is a variant that is not known here; see docs/own_model.md for others"
        )
    noted = known.preprocessing
    return traverse_util.unflatten_dict(leaves), {
        "arch": known.arch,
        "arch_options": known.options,
        "preprocessing": noted.noted,
        "image_size": noted.size,
    }


def _leaves(known: Known) -> Iterator[tuple[tuple[str, ...], jax.ShapeDtypeStruct]]:
    """Paths of the variables, ``(collection, module, …, name)``, with their shapes."""
    network = create(known.arch, **known.options)
    image = jax.ShapeDtypeStruct((1, 64, 64, 3), np.float32)
    tree = jax.eval_shape(network.init, jax.random.key(0), image)
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        yield tuple(entry.key for entry in path), leaf


def _value(
    known: Known, collection: str, place: tuple[str, ...]
) -> tuple[list[str], np.ndarray | None]:
    """Names of the tensors that a variable is made of, and its value."""
    source = known.keys.get(".".join(place))
    if isinstance(source, str):
        source = Source(source)
    if isinstance(source, Source):
        names, thirds, turned = [source.name], source.thirds, source.turned
    else:
        module, leaf = ".".join(place[:-1]), _LEAVES[collection, place[-1]]
        given = known.keys[module]
        assert not isinstance(given, Source)
        prefixes = (given,) if isinstance(given, str) else given
        names = [f"{prefix}.{leaf}" for prefix in prefixes]
        thirds, turned = None, True
    if not all(name in known.tensors for name in names):
        return names, None
    value = np.concatenate([np.atleast_1d(known.tensors[name]) for name in names])
    if thirds is not None:
        start, stop = (len(value) * n // 3 for n in thirds)
        value = value[start:stop]
    if place[-1] == "kernel" and turned:
        # OIHW to HWIO, [out, in] to [in, out].
        value = value.transpose({4: (2, 3, 1, 0), 2: (1, 0)}[value.ndim])
    return names, value


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
