"""Episodes a second of the whole RDC, beside what others would write.

    python benchmarks/core.py [--episodes=512] [--devices=2] [--memory]

All run on the same features in one process, in turns: NumPy as a user writes it first,
with ``np.linalg.svd``; the same with ``np.linalg.eigh``; PyTorch in batched operations
with an exact ``eigh``; PyTorch with a subspace iteration (``benchmarks/rivals.py``).
Each uses all the cores that it is given; ``taskset -c 0`` gives one to all of them.
``--devices=2`` gives JAX two CPU devices and shards the episodes over them.
``--memory`` instead measures the peak memory of 10,000 episodes beyond their inputs.
"""

import argparse
import functools
import importlib.util
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import rivals

import rdc_jax


def make_features(episodes: int, n: int, d: int, seed: int = 0) -> np.ndarray:
    """Features like a ResNet's: non-negative, with class structure."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((episodes, 5, 1, d), np.float32)
    noise = rng.standard_normal((episodes, 5, n // 5, d), np.float32)
    x = np.maximum(centre + 1.5 * noise - 0.5, 0)
    # Supports first: the same place of every class, then the next.
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(episodes, n, d)


def timed(fn, *args):
    """Seconds of a call, until its results are there, and the results."""
    start = time.perf_counter()
    out = jax.block_until_ready(fn(*args))
    return time.perf_counter() - start, out


def jitted(chunk: int | None):
    """Class distances of many episodes; what is not returned is not kept."""

    def one(support, labels, query):
        return rdc_jax.rdc(support, labels, query, num_classes=5).class_distances

    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("episode",))
    spec = jax.sharding.PartitionSpec("episode")
    mapped = rdc_jax.over_episodes(one, chunk)
    return jax.jit(
        jax.shard_map(mapped, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    )


def others():
    """Name, function of tasks and labels, and one over its share of the episodes."""
    numpy = {"svd": rivals.leading_by_svd, "eigh": rivals.leading_by_eigh}
    for name, leading in numpy.items():
        fn = functools.partial(rivals.numpy_tasks, leading=leading)
        yield f"NumPy, {name}", fn, 64
    if importlib.util.find_spec("torch"):
        for name, iterate, share in (("eigh", False, 8), ("iterated", True, 2)):
            fn = functools.partial(rivals.torch_tasks, iterate=iterate)
            yield f"PyTorch, {name}", fn, share


def compare(n: int, d: int, episodes: int, chunk: int | None, turns: int) -> None:
    """Time all in turns, and print a line for each."""
    shot = n // 5 - 15
    x = make_features(episodes, n, d)
    labels = np.tile(np.arange(5), shot).astype(np.int32)
    inputs = (x[:, : 5 * shot], np.tile(labels, (episodes, 1)), x[:, 5 * shot :])
    ours = jitted(chunk)
    compile_time, _ = timed(ours, *inputs)
    rates: dict[str, list[float]] = {"rdc_jax": []}
    agree: dict[str, float] = {}
    for _ in range(turns):
        seconds, got = timed(ours, *inputs)
        rates["rdc_jax"].append(episodes / seconds)
        for name, fn, share in others():
            some = x[: max(episodes // share, 2)]
            seconds, want = timed(fn, some, labels)
            rates.setdefault(name, []).append(len(some) / seconds)
            same = np.argmin(want, -1) == np.argmin(got[: len(some)], -1)
            agree[name] = same.mean()
    mine = np.array(rates["rdc_jax"])
    flops = matmul_flops(n, d) * np.median(mine) / 1e9
    print(
        f"n={n} d={d}, {episodes} episodes on {processor()}\n"
        f"  rdc_jax            {np.median(mine):7.1f}/s ({mine.min():.1f} to "
        f"{mine.max():.1f}); compiled and first run {compile_time:.1f} s; matrix "
        f"products {flops:.0f} GFLOP/s of {gemm_rate():.0f} (512-cubed in XLA)"
    )
    for name in agree:
        ratio = mine / np.array(rates[name])
        print(
            f"  {name:18} {np.median(rates[name]):7.1f}/s, rdc_jax is "
            f"{np.median(ratio):5.1f}x ({ratio.min():.1f} to {ratio.max():.1f}); "
            f"same predictions {agree[name]:.4f}"
        )


def processor() -> str:
    """What it runs on: accelerator, or the CPU by its name and its vectors."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return f"{jax.device_count()} x {device.device_kind}"
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return "CPU"
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    fields = {name.strip(): value for name, value in fields.items()}
    flags = fields.get("flags", "").split()
    vectors = [f for f in ("avx2", "avx512f", "amx_tile") if f in flags]
    return f"{fields.get('model name', 'CPU').strip()} ({', '.join(vectors)})"


def matmul_flops(n: int, d: int, coordinates: int = 16) -> float:
    """Multiply-adds of one round of the subspace and of the distances, times two."""
    b = n + coordinates
    kernel = n * d * d
    products = d * d * (n + b)  # the rows, then the block, times the kernel
    orthogonal = d * n * n + 5 * d * b * b
    restricted = d * b * b + 30 * b**3  # about as many products make the projector
    projected = 3 * n * d * b + 3 * n * b * b
    distances = 3 * n * n * d + 6 * n * n * b
    sets = 2 * 3 * n**3
    subspace = products + orthogonal + restricted + projected
    return 2 * (kernel + subspace + distances + sets)


@functools.cache
def gemm_rate() -> float:
    """GFLOP/s of XLA's plain matrix product on this machine."""
    a = jnp.ones((16, 512, 512))
    multiply = jax.jit(lambda a: a @ a)
    multiply(a).block_until_ready()
    best = min(timed(multiply, a)[0] for _ in range(10))
    return 16 * 2 * 512**3 / best / 1e9


def resident(field: str) -> int:
    """Memory of this process in KiB: ``VmRSS`` now, ``VmHWM`` at its peak."""
    status = pathlib.Path("/proc/self/status").read_text()
    (line,) = (x for x in status.splitlines() if x.startswith(field))
    return int(line.split()[1])


def memory(episodes: int = 10_000, n: int = 80, d: int = 512) -> None:
    """Print the peak memory of a large call."""
    x = make_features(episodes, n, d)
    labels = np.tile(np.arange(5, dtype=np.int32), (episodes, 1))
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("episode",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("episode"))
    inputs = jax.block_until_ready(jax.device_put((x[:, :5], labels, x[:, 5:]), split))
    del x
    # Making the inputs took more than holding them: start a new peak (Linux only).
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    seconds, _ = timed(jitted(None), *inputs)
    after = resident("VmHWM")
    size = sum(v.nbytes for v in inputs) / 2**30
    print(
        f"{episodes} episodes, n={n}, inputs {size:.2f} GiB: "
        f"peak {(after - before) / 2**20:.2f} GiB beyond them; "
        f"{episodes / seconds:.1f} episodes/s including compilation"
    )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, default=512)
    parser.add_argument("--chunk", type=int, default=None)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--devices", type=int, default=1, help="CPU devices")
    args = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", args.devices)
    if args.memory:
        return memory()
    for n in (80, 100):
        compare(n, 512, args.episodes, args.chunk, args.turns)


if __name__ == "__main__":
    main()
