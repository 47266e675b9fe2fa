"""Re-ranking of large galleries: time and memory, beside the usual code.

    python benchmarks/rerank.py [--sizes=12500,25000,50000,100000] [--queries=1000]
    python benchmarks/rerank.py --pictures=DATA/cub,DATA/cars [--checkpoint=PATH]

Features are synthetic, 512 numbers in clusters of 50 rows. Each size runs in a process
of its own, so that the peak memory and the CPU time (of all cores, as a busy machine
makes waiting times worthless) are its own. Beside it, up to --usual rows, the
published algorithm as it is commonly written, with [n, n] matrices and loops over rows,
by NumPy alone (``numpy``) or with neighbours from FAISS (``faiss``); and, at all sizes,
FAISS's exact search of the neighbours alone (``search``), with which any version that
uses it begins. FAISS is ``pip install faiss-cpu``.

With --pictures: every second picture of a class is a query, the others are the gallery;
mAP and rank-1 before and after re-ranking.
"""

import argparse
import dataclasses
import json
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np

FEATURES = 512
KINDS = ("ours", "search", "faiss", "numpy")


def make_rows(n: int, seed: int) -> np.ndarray:
    """Non-negative features in clusters of 50; seeds share the clusters' centres."""
    centres = np.random.default_rng(0).standard_normal((n // 50 + 1, FEATURES), "f4")
    rng = np.random.default_rng([1, seed])
    noise = rng.standard_normal((n, FEATURES), "f4")
    return np.maximum(centres[np.arange(n) % len(centres)] + 1.5 * noise - 0.5, 0)


def ours(query: np.ndarray, gallery: np.ndarray) -> dict[str, float]:
    """Seconds of the index and of all queries, compiling included."""
    from rdc_jax.rerank import build_index

    began = time.perf_counter()
    index = build_index(gallery)
    indexed = time.perf_counter()
    for _, after in index.blocks(query):
        assert np.isfinite(after).all()
    return {"index": indexed - began, "queries": time.perf_counter() - indexed}


def usual(query: np.ndarray, gallery: np.ndarray, *, faiss: bool) -> dict[str, float]:
    """The published algorithm as it is commonly written, in NumPy."""
    began = time.perf_counter()
    x = np.concatenate([query, gallery])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    n, q, k, k2 = len(x), len(query), 20, 6
    if faiss:
        import faiss as library

        searched = library.IndexFlatL2(FEATURES)
        searched.add(x)
        _, order = searched.search(x, k + 1)
        order = order.astype(np.int32)
        largest = np.full(
            n, 2.0, np.float32
        )  # No full rows: their maximum is not known.
    else:
        squared = np.maximum(2 - 2 * x @ x.T, 0)
        largest = squared.max(axis=1)
        order = np.argpartition(squared, range(1, k + 1), axis=1)[:, : k + 1]
        order = order.astype(np.int32)

    def reciprocal(i: int, count: int) -> np.ndarray:
        forward = order[i, :count]
        return forward[(order[forward, :count] == i).any(axis=1)]

    half = [reciprocal(i, k // 2 + 1) for i in range(n)]
    codes = np.zeros((n, n), np.float32)
    for i in range(n):
        base = reciprocal(i, k + 1)
        grown = [base]
        for candidate in base:
            if len(np.intersect1d(half[candidate], base)) > 2 / 3 * len(
                half[candidate]
            ):
                grown.append(half[candidate])
        members = np.unique(np.concatenate(grown))
        weight = np.exp(-np.maximum(2 - 2 * x[members] @ x[i], 0) / largest[i])
        codes[i, members] = weight / weight.sum()
    codes = np.stack([codes[order[i, :k2]].mean(axis=0) for i in range(n)])
    holders = [np.flatnonzero(codes[:, i]) for i in range(n)]
    for i in range(q):
        shared = np.zeros(n, np.float32)
        for member in np.flatnonzero(codes[i]):
            rows = holders[member]
            shared[rows] += np.minimum(codes[i, member], codes[rows, member])
        jaccard = 1 - shared / (2 - shared)
        plain = np.maximum(2 - 2 * x[q:] @ x[i], 0) / largest[i]
        0.7 * jaccard[q:] + 0.3 * plain
    return {"index": time.perf_counter() - began, "queries": 0.0}


def search(query: np.ndarray, gallery: np.ndarray) -> dict[str, float]:
    """FAISS's search for the nearest 21 rows of every row."""
    import faiss

    x = np.concatenate([query, gallery])
    faiss.normalize_L2(x)
    began = time.perf_counter()
    searched = faiss.IndexFlatL2(FEATURES)
    searched.add(x)
    searched.search(x, 21)
    return {"index": time.perf_counter() - began, "queries": 0.0}


def one(kind: str, gallery: int, queries: int) -> None:
    """Run one kind at one size, and print what it took."""
    rows = make_rows(queries, seed=0), make_rows(gallery, seed=1)
    run = {"ours": ours, "search": search}.get(kind)
    took = run(*rows) if run else usual(*rows, faiss=kind == "faiss")
    used = resource.getrusage(resource.RUSAGE_SELF)
    took |= {"cpu": used.ru_utime + used.ru_stime, "gib": used.ru_maxrss / 2**20}
    print(json.dumps(took))


def grow(sizes: list[int], queries: int, most_usual: int) -> None:
    """Print a line for each kind and size."""
    print(f"{'':8}{'gallery':>9}{'index':>9}{'queries':>9}{'CPU':>9}{'peak':>10}")
    for kind in KINDS:
        for size in sizes:
            if kind in ("numpy", "faiss") and size > most_usual:
                continue
            command = [sys.executable, __file__, "--one", kind, "--sizes", str(size)]
            done = subprocess.run(
                [*command, "--queries", str(queries)], capture_output=True, text=True
            )
            if done.returncode:
                print(f"{kind:8}{size:9} {done.stderr.strip().splitlines()[-1]}")
                continue
            took = json.loads(done.stdout)
            parts = ("index", "queries", "cpu")
            seconds = "".join(f"{took[part]:8.1f}s" for part in parts)
            print(f"{kind:8}{size:9}{seconds}{took['gib']:6.2f} GiB", flush=True)


def pictures(folders: list[str], checkpoint: str, size: int | None) -> None:
    """Print mAP and rank-1 before and after, of each folder and some settings."""
    from rdc_jax.rerank import ZHONG, Labels, build_index, score, summary
    from rdc_jax.rerank.inputs import embed_folder

    settings = [ZHONG]
    for k, k2, lam in ((10, 3, 0.3), (10, 3, 0.5), (40, 10, 0.3)):
        settings.append(dataclasses.replace(ZHONG, k=k, k2=k2, lam=lam))
    for folder in folders:
        rows = embed_folder(folder, checkpoint, size)
        classes, name = rows.labels.classes, pathlib.Path(folder).name
        number = np.zeros(len(classes), int)  # within the class
        for known in np.unique(classes):
            number[classes == known] = np.arange((classes == known).sum())
        asked = number % 2 == 0
        labels = Labels(classes[asked]), Labels(classes[~asked])
        print(f"{name}: {asked.sum()} queries, {(~asked).sum()} in the gallery")
        for params in settings:
            title = f"k={params.k}, k2={params.k2}, lam={params.lam}"
            index = build_index(rows.features[~asked], params)
            both = zip(*index.blocks(rows.features[asked]), strict=True)
            before, after = (summary(score(np.concatenate(x), *labels)) for x in both)
            for when, found in (("before", before), ("after", after)):
                print(
                    f"  {title:24}{when:8}mAP {found['mAP']:.2f}"
                    f"  rank-1 {found['rank1']:.2f}"
                )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="12500,25000,50000,100000")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--usual", type=int, default=12500)
    parser.add_argument("--one", choices=KINDS)
    parser.add_argument("--pictures", default="")
    parser.add_argument("--checkpoint", default="packaged")
    parser.add_argument("--image_size", type=int)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    if arguments.one:
        one(arguments.one, sizes[0], arguments.queries)
    elif arguments.pictures:
        folders = arguments.pictures.split(",")
        pictures(folders, arguments.checkpoint, arguments.image_size)
    else:
        grow(sizes, arguments.queries, arguments.usual)


if __name__ == "__main__":
    main()
