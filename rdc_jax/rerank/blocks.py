"""A function of rows, run on blocks of them, each block split over all devices."""

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jaxtyping import Int

from rdc_jax.runtime.processes import Layout, make_layout

# Numbers in the largest array of a block, on each device: 128 MiB of float32.
_NUMBERS = 2**25


def map_rows(
    fn: Callable[..., Any],
    rows: Sequence[np.ndarray],
    shared: Any,
    *,
    row_size: int,
    which: Int[np.ndarray, " n"] | None = None,
    **static: Any,
) -> Iterator[tuple[slice, Any]]:
    """Apply a function to rows, a block at a time; all blocks have one shape.

    The rows of a block are split over the devices of all processes, and every process
    gets all results. Processes must call this together, with the same arrays.

    Args:
      fn: ``fn(rows, shared, **static)``: arrays with a leading axis of rows in, arrays
        with the same leading axis out; each row by itself.
      rows: Arrays with one leading axis, memory-mapped ones too.
      shared: What all rows need, see ``replicate``.
      row_size: Numbers that the largest intermediate has for one row.
      which: Places of the rows to take; ``None``: all, in order.
      **static: Sizes, part of the compiled program.

    Yields:
      Places within ``which`` and the results there, as NumPy arrays.
    """
    layout = make_layout()
    count = len(rows[0]) if which is None else len(which)
    block = block_size(count, row_size)
    program = _program(fn, layout, tuple(sorted(static.items())))
    for start in range(0, count, block):
        part = slice(start, min(start + block, count))
        taken = part if which is None else which[part]
        given = tuple(_put(_padded(x[taken], block), layout.sharded) for x in rows)
        real = slice(part.stop - start)
        out = jax.tree.map(np.asarray, program(given, shared))
        yield part, jax.tree.map(operator.itemgetter(real), out)


def block_size(count: int, row_size: int) -> int:
    """Rows a block: a power of two on each device, so that few programs are compiled.

    >>> block_size(count=10**5, row_size=10**5) // jax.device_count()
    256
    """
    devices = jax.device_count()
    most = max(_NUMBERS // row_size, 1).bit_length() - 1
    needed = (-(-count // devices) - 1).bit_length()
    return devices << min(most, max(needed, 0))


def replicate(tree: Any) -> Any:
    """Copy NumPy arrays to every device of all processes."""
    sharding = make_layout().replicated
    return jax.tree.map(lambda x: _put(x, sharding), tree)


def _put(x: np.ndarray, sharding: NamedSharding) -> jax.Array:
    if jax.process_count() == 1:
        return jax.device_put(x, sharding)
    return jax.make_array_from_callback(x.shape, sharding, lambda where: x[where])


def _padded(x: np.ndarray, rows: int) -> np.ndarray:
    filler = np.zeros((rows - len(x), *x.shape[1:]), x.dtype)
    return np.concatenate([x, filler]) if len(filler) else np.ascontiguousarray(x)


@functools.cache
def _program(
    fn: Callable[..., Any], layout: Layout, static: tuple[tuple[str, Any], ...]
) -> Callable[..., Any]:
    sharded = jax.shard_map(
        functools.partial(fn, **dict(static)),
        mesh=layout.mesh,
        in_specs=(layout.sharded.spec, layout.replicated.spec),
        out_specs=layout.sharded.spec,
        check_vma=False,
    )
    return jax.jit(sharded, out_shardings=layout.replicated)
