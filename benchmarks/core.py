"""Episodes a second of the whole RDC, beside NumPy as a user would write it.

    python benchmarks/core.py [--episodes=512] [--memory]

Both run on the same features in one process, in turns. The NumPy version is the usual
re-ranking code: vectorised distances, ``np.linalg.svd`` for the subspace, sets by
loops over rows; NumPy's matrix products use all cores. XLA's LAPACK is kept to one
thread, as ``run_eval.py`` does and as ``OPENBLAS_NUM_THREADS=1`` would
(``--lapack_threads`` leaves it alone). ``--devices=2`` shards over two CPU devices.
``--memory`` instead measures the peak memory of 10,000 episodes beyond their inputs.
"""

import argparse
import contextlib
import functools
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import rdc_jax
from rdc_jax.runtime.threads import one_lapack_thread


def make_features(episodes: int, n: int, d: int, seed: int = 0) -> np.ndarray:
    """Features like a ResNet's: non-negative, with class structure."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((episodes, 5, 1, d), np.float32)
    noise = rng.standard_normal((episodes, 5, n // 5, d), np.float32)
    x = np.maximum(centre + 1.5 * noise - 0.5, 0)
    # Supports first: the same place of every class, then the next.
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(episodes, n, d)


def numpy_rerank(x: np.ndarray, labels: np.ndarray, k: int, k2: int) -> np.ndarray:
    """Calibrated distances of one space, lambda = .5."""
    n, s = len(x), len(labels)
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    dist = np.sqrt(np.maximum(2 - 2 * x @ x.T, 0))
    np.fill_diagonal(dist, 0)
    rank = np.argsort(dist, axis=1, kind="stable")

    def reciprocal(i: int, count: int) -> np.ndarray:
        forward = rank[i, :count]
        backward = rank[forward, :count]
        return forward[np.where(backward == i)[0]]

    half = [reciprocal(i, round(k / 2) + 1) for i in range(n)]
    sets = []
    for i in range(n):
        base = reciprocal(i, k + 1)
        grown = base
        for g in base:
            if len(np.intersect1d(half[g], base)) >= 2 / 3 * len(half[g]):
                grown = np.append(grown, half[g])
        sets.append(np.unique(grown))
    for i in range(s):
        others = np.flatnonzero(labels != labels[i])
        sets[i] = np.setdiff1d(sets[i], others)
    for c in np.unique(labels):
        union = np.unique(
            np.concatenate([sets[i] for i in np.flatnonzero(labels == c)])
        )
        for i in np.flatnonzero(labels == c):
            sets[i] = union
    code = np.zeros((n, n), np.float32)
    for i, members in enumerate(sets):
        weight = np.exp(-dist[i, members])
        code[i, members] = weight / weight.sum()
    code = np.stack([code[rank[i, :k2]].mean(axis=0) for i in range(n)])
    jaccard = np.zeros((n, n), np.float32)
    for i in range(n):
        shared = np.minimum(code[i], code).sum(axis=1)
        jaccard[i] = 1 - shared / (2 - shared)
    return 0.5 * dist + 0.5 * jaccard


def numpy_rdc(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Class distances of one episode, k = 10, k2 = 8, p = 64."""
    z = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    z = z - z.mean(axis=0)
    u, _, _ = np.linalg.svd(np.tanh(z.T @ z))
    both = [numpy_rerank(f, labels, 10, 8) for f in (x, z @ u[:, :64])]
    dist = (both[0] + both[1]) / 2
    s = len(labels)
    columns = [dist[s:, :s][:, labels == c].mean(axis=1) for c in range(5)]
    return np.stack(columns, axis=1)


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


def compare(n: int, d: int, episodes: int, chunk: int | None, numpy_share: int) -> None:
    """Time both in turns and print a line."""
    shot = n // 5 - 15
    x = make_features(episodes, n, d)
    labels = np.tile(np.arange(5), shot).astype(np.int32)
    inputs = (x[:, : 5 * shot], np.tile(labels, (episodes, 1)), x[:, 5 * shot :])
    ours = jitted(chunk)
    compile_time, _ = timed(ours, *inputs)
    ratios, rates = [], []
    for turn in range(3):
        pick = range(turn * numpy_share, (turn + 1) * numpy_share)
        slow, want = timed(lambda p=pick: [numpy_rdc(x[i], labels) for i in p])
        fast, got = timed(ours, *inputs)
        agree = np.mean(
            np.argmin(np.stack(want), -1) == np.argmin(got[np.asarray(pick)], -1)
        )
        rates.append((numpy_share / slow, episodes / fast, agree))
        ratios.append((episodes / fast) / (numpy_share / slow))
    numpy_rate, our_rate, agree = np.median(rates, axis=0)
    flops = matmul_flops(n, d)
    print(
        f"n={n:4d} d={d} episodes={episodes}: NumPy {numpy_rate:6.2f}/s, "
        f"rdc_jax {our_rate:7.1f}/s, ratio {np.median(ratios):5.1f}x "
        f"(turns: {', '.join(f'{r:.1f}' for r in ratios)}); "
        f"same predictions {agree:.4f}; compiled and first run {compile_time:.1f} s; "
        f"matrix products {our_rate * flops / 1e9:.1f} GFLOP/s "
        f"of {gemm_rate():.1f} (a 512-cubed product in XLA)"
    )


def matmul_flops(n: int, d: int, dim: int = 64, coordinates: int = 32) -> float:
    """Multiply-adds of one round of the subspace and of the distances, times two."""
    b = n + coordinates
    kernel = n * d * d
    products = 2 * d * d * b  # the kernel times the block, twice
    orthogonal = 3 * (d * b * b + d * b * b / 2) + d * b * b
    basis = 2 * d * b * dim + n * d * dim
    distances = 3 * n * n * d + 3 * n * n * dim
    sets = 2 * 3 * n**3
    return 2 * (kernel + products + orthogonal + basis + distances + sets)


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
    parser.add_argument("--numpy_episodes", type=int, default=8, help="in each turn")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--lapack_threads", action="store_true", help="leave them")
    parser.add_argument("--devices", type=int, default=1, help="CPU devices")
    args = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", args.devices)
    limit = contextlib.nullcontext() if args.lapack_threads else one_lapack_thread()
    with limit:
        if args.memory:
            return memory()
        for n in (80, 100):
            compare(n, 512, args.episodes, args.chunk, args.numpy_episodes)


if __name__ == "__main__":
    main()
