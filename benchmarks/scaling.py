"""How time and memory grow with episodes, images of a task, features, images of a set.

    python benchmarks/scaling.py [--turns=3] [--out=docs/images/scaling.png]

Each series changes one size. Seconds are those of the fastest of several turns. Memory
of RDC is what XLA plans for beside inputs, results included; memory of the caches is
the process's peak beyond what it held before (Linux). Exponents are slopes of least
squares in logarithms over the three largest sizes, where fixed costs are small.
Needs matplotlib.
"""

import argparse
import dataclasses
import functools
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from PIL import Image

import rdc_jax
from rdc_jax.data.features import feature_cache
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.pixels import pixel_cache
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.runtime.threads import one_lapack_thread

OUT = pathlib.Path(__file__).parents[1] / "docs/images/scaling.png"
EDGE, CLASSES = 8, 200  # of the tiny images
_FITTED = 3  # sizes


@dataclasses.dataclass
class Series:
    """One size that grows.

    Attributes:
      title: What grows, and at which other sizes.
      label: Of the axis.
      sizes: Values of it.
      seconds: Of the fastest turn.
      megabytes: Beside the inputs.
    """

    title: str
    label: str
    sizes: Sequence[int]
    seconds: list[float] = dataclasses.field(default_factory=list)
    megabytes: list[float] = dataclasses.field(default_factory=list)

    def exponent(self, values: Sequence[float]) -> float:
        """Slope in logarithms of the largest sizes."""
        logs = np.log(self.sizes[-_FITTED:]), np.log(values[-_FITTED:])
        return float(np.polyfit(*logs, 1)[0])


CLASS_NAMES = tuple(map(str, range(CLASSES)))


def tiny_images(length: int) -> ImageSet:
    """A data set of one's own: images that are functions of their number."""

    def read(i: int) -> Image.Image:
        return Image.new("RGB", (EDGE, EDGE), (i % 256,) * 3)

    return ImageSet(
        name="tiny",
        split="test",
        ids=tuple(map(str, range(length))),
        labels=np.arange(length) % CLASSES,
        class_names=CLASS_NAMES,
        read=read,
        identity=f"tiny {length}",
    )


# A call, and its megabytes where they are known before it is made.
Prepared = tuple[Callable[[], Any], float | None]


def peak_of(call: Callable[[], Any]) -> float:
    """Megabytes that a call takes at its peak beyond what was there (Linux)."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = _resident("VmRSS")
    call()
    return max((_resident("VmHWM") - before) / 1024, 0.0)


def _resident(field: str) -> int:
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith(field))


def measure(series: Series, make: Callable[[int], Prepared], turns: int) -> None:
    """Fill a series; ``make`` prepares a call at a size, and may know its memory."""
    for size in series.sizes:
        call, planned = make(size)
        series.megabytes.append(peak_of(call) if planned is None else planned)
        seconds = []
        for _ in range(turns):
            began = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - began)
        series.seconds.append(min(seconds))
        print(
            f"{series.title}: {size:,}: {series.seconds[-1]:.3f} s, "
            f"{series.megabytes[-1]:.0f} MB",
            flush=True,
        )
    print(
        f"-> time grows with exponent {series.exponent(series.seconds):.2f}, "
        f"memory with {series.exponent(series.megabytes):.2f}",
        flush=True,
    )


def tasks(
    episodes: int, *, way: int, shot: int, query: int, d: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of supports, their labels, features of queries, of classes far apart."""
    rng = np.random.default_rng(0)
    labels_n = np.repeat(np.tile(np.arange(way), 2), [shot] * way + [query] * way)
    x_end = rng.standard_normal((episodes, len(labels_n), d), np.float32)
    x_end += 4 * rng.standard_normal((episodes, way, d), np.float32)[:, labels_n]
    x_end, s = np.maximum(x_end, 0), way * shot
    return x_end[:, :s], np.tile(labels_n[:s], (episodes, 1)), x_end[:, s:]


def episodes_call(
    episodes: int, *, way: int = 5, shot: int = 1, query: int = 4, d: int = 64
) -> Prepared:
    """RDC on many tasks in one call, which gives distances to classes."""

    def one(support, labels, query):
        out = rdc_jax.rdc(support, labels, query, num_classes=way)
        return out.class_distances

    inputs = jax.device_put(tasks(episodes, way=way, shot=shot, query=query, d=d))
    compiled = jax.jit(rdc_jax.over_episodes(one)).lower(*inputs).compile()
    plan = compiled.memory_analysis()
    megabytes = (plan.temp_size_in_bytes + plan.output_size_in_bytes) / 2**20

    def call() -> jax.Array:
        return jax.block_until_ready(compiled(*inputs))

    call()  # The first one is slower.
    return call, megabytes


def images_call(length: int) -> Prepared:
    """Pixels and features of a data set into caches, then 1,000 tasks from them.

    The call gives the rows of the tasks' images, and their features.
    """
    source = tiny_images(length)

    @jax.jit
    def features_of(images):
        return images.reshape(len(images), -1).astype("float32")

    def call() -> tuple[np.ndarray, np.ndarray]:
        with tempfile.TemporaryDirectory() as folder:
            pixels = pixel_cache(source, EDGE, folder)
            feat_nd = feature_cache(
                pixels,
                features_of,
                weights_fingerprint="0" * 12,
                transform="none",
                cache_dir=folder,
            )
            spec = TaskSpec(way=5, shot=1, query=4)
            sampler = TaskSampler(source.labels, spec, seed=0, dataset="tiny")
            indices_en = sampler(range(1000)).indices
            return indices_en, np.asarray(feat_nd[indices_en])

    return call, None


def draw(found: Sequence[Series], out: pathlib.Path) -> None:
    """Plot all series, time above and memory below."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(found), figsize=(3.1 * len(found), 5.2), squeeze=False
    )
    for column, series in enumerate(found):
        rows = (("seconds", series.seconds), ("MB at the peak", series.megabytes))
        for row, (name, values) in enumerate(rows):
            axis = axes[row, column]
            seen = [value if value > 0 else np.nan for value in values]
            axis.loglog(series.sizes, seen, "o-", color="#1f5f99")
            axis.set_title(f"exponent {series.exponent(values):.2f}", fontsize=9)
            axis.set_xticks(series.sizes, [f"{size:,}" for size in series.sizes])
            axis.tick_params(axis="x", labelsize=7)
            axis.minorticks_off()
            least = min(value for value in values if value > 0)
            axis.set_ylim(least / 2, 2 * max(*values, 10 * least))  # two labels or more
            axis.set_xlabel(series.label, fontsize=9)
            axis.set_ylabel(name if column == 0 else "", fontsize=9)
            axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default=OUT)
    turns = parser.parse_args().turns
    out = parser.parse_args().out
    task = functools.partial(episodes_call, 4)
    sweeps = [
        (
            Series("episodes (n = 25, d = 64)", "episodes", (300, 1000, 3000, 10_000)),
            episodes_call,
        ),
        (
            Series("images of a task (d = 64)", "n", (50, 100, 200, 400, 800)),
            lambda n: task(query=n // 5 - 1),
        ),
        (
            Series("features (n = 25)", "d", (64, 128, 256, 512, 1024)),
            lambda d: task(d=d),
        ),
        (
            Series("ways (20-shot, 15 queries, d = 64)", "ways", (5, 10, 20, 50)),
            lambda way: episodes_call(1, way=way, shot=20, query=15),
        ),
        (
            Series(
                "images of a set (8 x 8)", "images", (3000, 10_000, 30_000, 100_000)
            ),
            images_call,
        ),
    ]
    with one_lapack_thread():
        for series, make in sweeps:
            measure(series, make, turns)
    draw([series for series, _ in sweeps], out)


if __name__ == "__main__":
    main()
