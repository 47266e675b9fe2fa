"""One episode a function; this module maps it over many, in bounded memory."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

# What the tasks of a call may take where the device does not tell how much memory it
# has (a CPU), and the share of it where it does.
_BUDGET = 64 * 2**20
_SHARE = 0.25
# What may exist at once for each core of a CPU: more leaves its caches.
_CACHE = 4 * 2**20


def over_episodes(
    fn: Callable[..., Any], chunk: int | None = None
) -> Callable[..., Any]:
    """Map ``fn`` over the leading axis of its arguments, a chunk of episodes at a time.

    Like ``jax.vmap(fn)``, but the intermediates of only ``chunk`` episodes exist at
    once. The last chunk may be smaller. A single episode goes through ``fn`` plainly:
    weights of its own would make every product of a network a batched one, which is
    slower on CPU even in a batch of one. Composes with ``jit``, ``grad``, ``vmap`` and
    ``shard_map``; wrap the result in ``jax.jit``.

    Example:
      >>> import functools, jax, jax.numpy as jnp
      >>> import rdc_jax
      >>> support = jax.random.normal(jax.random.key(0), (100, 5, 32))
      >>> query = jax.random.normal(jax.random.key(1), (100, 15, 32))
      >>> labels = jnp.tile(jnp.arange(5), (100, 1))
      >>> one = functools.partial(rdc_jax.npc, num_classes=5)
      >>> jax.jit(rdc_jax.over_episodes(one, chunk=32))(support, labels, query).shape
      (100, 15, 5)

    Args:
      fn: A function of one episode: pytrees of arrays in, a pytree of arrays out.
      chunk: Episodes at a time; ``None``: as many as an estimate of the intermediates
        of one episode allows, see ``chunk_size``; on CPU, what stays in its caches.

    Returns:
      A function of the same arguments, keywords included, with a leading episode axis
      on every array.
    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be at least 1, got {chunk}")

    def one_episode(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        args, kwargs = arguments
        return fn(*args, **kwargs)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        arguments = (args, kwargs)
        episodes = _episodes(arguments)  # first: its error names the axis
        if episodes == 1:
            one_args, one_kwargs = jax.tree.map(lambda x: x[0], arguments)
            return jax.tree.map(lambda x: x[None], fn(*one_args, **one_kwargs))
        size = chunk or chunk_size(one_episode, arguments, budget=_working_budget())
        if size >= episodes:
            return jax.vmap(fn)(*args, **kwargs)
        size = _even(size, episodes)
        return lax.map(one_episode, arguments, batch_size=size if size > 1 else None)

    return mapped


def _even(size: int, episodes: int) -> int:
    """A chunk that leaves no remainder, if there is one between half the size and it.

    With a remainder, all inputs but the last few are copied.
    """
    sizes = range(size, size // 2, -1)
    return next((even for even in sizes if episodes % even == 0), size)


def chunk_size(fn: Callable[..., Any], *args: Any, budget: int | None = None) -> int:
    """How many episodes fit into the memory budget, by the intermediates of one.

    Args:
      fn: A function of one episode.
      *args: Its arguments with a leading episode axis (arrays or shapes).
      budget: Bytes; ``None``: a quarter of the device's memory, 64 MiB on CPU.

    Returns:
      At least 1, at most the number of episodes.
    """
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), args)
    needed = max(peak_bytes(jax.make_jaxpr(fn)(*one).jaxpr), 1)
    budget = _default_budget() if budget is None else budget
    return int(min(max(budget // needed, 1), max(_episodes(args), 1)))


def peak_bytes(jaxpr: Jaxpr) -> int:
    """Largest sum of live intermediates while a jaxpr runs equation by equation.

    An upper estimate: compilers fuse, and keep fewer arrays than the program names.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from rdc_jax.core.batching import peak_bytes
      >>> peak_bytes(jax.make_jaxpr(lambda x: x @ x.T)(jnp.ones((10, 3))).jaxpr)
      520
    """
    last_use = {
        var: time
        for time, eqn in enumerate(jaxpr.eqns)
        for var in eqn.invars
        if not isinstance(var, Literal)
    }
    last_use |= {
        v: len(jaxpr.eqns) for v in jaxpr.outvars if not isinstance(v, Literal)
    }
    made: dict[Any, int] = {}
    live = peak = 0
    for time, eqn in enumerate(jaxpr.eqns):
        inner = max((peak_bytes(sub) for sub in inner_jaxprs(eqn)), default=0)
        made |= {var: _bytes(var) for var in eqn.outvars}
        live += sum(_bytes(var) for var in eqn.outvars)
        peak = max(peak, live + inner)
        done = {v for v in (*eqn.invars, *eqn.outvars) if not isinstance(v, Literal)}
        live -= sum(made.pop(v, 0) for v in done if last_use.get(v, time) <= time)
    return peak


def inner_jaxprs(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """Give the programs that an equation calls: of a loop, a branch, a jit."""
    for leaf in jax.tree.leaves(
        list(eqn.params.values()),
        is_leaf=lambda x: isinstance(x, (ClosedJaxpr, Jaxpr)),
    ):
        if isinstance(leaf, ClosedJaxpr):
            yield leaf.jaxpr
        elif isinstance(leaf, Jaxpr):
            yield leaf


def _bytes(var: Any) -> int:
    aval = var.aval
    itemsize = getattr(getattr(aval, "dtype", None), "itemsize", 0)
    return int(getattr(aval, "size", 0)) * itemsize


def _episodes(args: Any) -> int:
    leading = {x.shape[:1] for x in jax.tree.leaves(args)}
    if len(leading) != 1 or leading == {()}:
        sizes = sorted(map(str, leading))
        raise ValueError(f"arrays need the same leading episode axis, got {sizes}")
    return int(leading.pop()[0])


def _default_budget() -> int:
    return _memory_share() or _BUDGET


def _working_budget() -> int:
    here = getattr(os, "sched_getaffinity", None)  # Not on every system.
    cores = len(here(0)) if here else os.cpu_count() or 1
    return _memory_share() or max(cores // jax.local_device_count(), 1) * _CACHE


def _memory_share() -> int:
    """A device's memory, as far as we take it; 0 where it does not tell."""
    limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    return int(limit * _SHARE) if limit else 0
