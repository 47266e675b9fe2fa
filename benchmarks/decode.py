"""Does decoding keep all cores busy, and memory flat?

    python benchmarks/decode.py [--images=2000] [--height=375] [--width=500] [--size=96]
    python benchmarks/decode.py --folder=DIR [--size=96]
    python benchmarks/decode.py --synthetic [--size=32]

Builds the pixel cache of JPEGs that it writes first, or of a folder of class folders.
A core is busy for as long as the process computes on it: CPU seconds over seconds. On a
machine with other work that is too low, so the second figure also counts the time that
threads, the main one too, could have run but were given no core (Linux); it may exceed
the number of cores. ``--synthetic`` measures how fast the built-in images are made
instead, after compilation.
"""

import argparse
import os
import pathlib
import tempfile
import threading
import time
from typing import NamedTuple

import numpy as np
from PIL import Image

from rdc_jax.data import open_source, pixel_cache
from rdc_jax.data.synthetic import DOMAINS, open_synthetic
from rdc_jax.runtime.errors import guard

_TASKS = pathlib.Path("/proc/self/task")
_PICTURES, _CLASSES = 40, 10  # different pictures; classes to put copies of them in


def write_photos(folder: pathlib.Path, images: int, height: int, width: int) -> None:
    """Smooth pictures with some grain, which take as long to decode as photographs."""
    rng = np.random.default_rng(0)
    first: list[bytes] = []
    for number in range(images):
        path = folder / f"class {number % _CLASSES}" / f"{number:06}.jpg"
        path.parent.mkdir(exist_ok=True)
        if number < _PICTURES:
            coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
            smooth = Image.fromarray(coarse).resize((width, height))
            noisy = np.asarray(smooth) + rng.normal(0, 12, (height, width, 3))
            picture = Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))
            picture.save(path, quality=90)
            first.append(path.read_bytes())
        else:
            path.write_bytes(first[number % _PICTURES])


class Moment(NamedTuple):
    """What was seen of this process at one time."""

    seconds: float
    megabytes: float


class Watch(threading.Thread):
    """Looks at this process twenty times a second until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.moments: list[Moment] = []
        self._waited: dict[str, tuple[int, int]] = {}  # first and last of each thread
        self._over = threading.Event()

    def run(self) -> None:
        """Look until stopped; threads that end in between are remembered."""
        while not self._over.wait(0.05):
            self.moments.append(Moment(time.perf_counter(), resident()))
            for task in _TASKS.iterdir():
                if task.name != str(self.native_id):
                    now = waited(task)
                    first, _ = self._waited.get(task.name, (now, now))
                    self._waited[task.name] = first, now

    def stop(self) -> float:
        """End; seconds that other threads waited for a core."""
        self._over.set()
        self.join()
        return sum(last - first for first, last in self._waited.values()) / 1e9


def resident() -> float:
    """Memory of this process in MB."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def waited(task: pathlib.Path) -> int:
    """Nanoseconds that a thread could have run but had no core."""
    try:
        return int((task / "schedstat").read_text().split()[1])
    except OSError:  # it has ended, or this is another system
        return 0


def measure(folder: str, size: int) -> None:
    """Build the cache once and print what it took."""
    source = open_source(folder)
    source.fingerprint()  # reads every file: what follows only decodes
    watch = Watch()
    watch.start()
    with tempfile.TemporaryDirectory() as cache:
        wall, cpu = time.perf_counter(), time.process_time()
        pixel_cache(source, size, cache)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    wait = watch.stop()
    quarters = np.array_split([moment.megabytes for moment in watch.moments], 4)
    memory = ", ".join(f"{max(quarter, default=0):.0f}" for quarter in quarters)
    print(f"{len(source):,} images to {size} px, {os.cpu_count()} cores")
    print(f"  images/s                 {len(source) / wall:8.0f}")
    print(f"  CPU ms an image          {1e3 * cpu / len(source):8.2f}")
    print(f"  busy cores               {cpu / wall:8.2f}")
    print(f"  busy or waiting for one  {(cpu + wait) / wall:8.2f}")
    print(f"  MB, most in each quarter of the time: {memory}")


def synthetic(size: int) -> None:
    """Make images of every built-in domain."""
    print(f"built-in images of {size} px, {os.cpu_count()} cores")
    print("            images/s   CPU ms an image")
    for name in DOMAINS:
        open_synthetic(name, size=size, seed=1).image(0)  # compiles
        source = open_synthetic(name, size=size)
        wall, cpu = time.perf_counter(), time.process_time()
        source.images(range(len(source)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"  {name:10s}{len(source) / wall:8.0f}{1e3 * cpu / len(source):18.2f}")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="class folders; made when not given")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--height", type=int, default=375)
    parser.add_argument("--width", type=int, default=500)
    parser.add_argument("--size", type=int, help="edge in pixels (96; synthetic: 32)")
    parser.add_argument("--synthetic", action="store_true")
    args = parser.parse_args()
    if args.synthetic:
        return synthetic(args.size or 32)
    if args.folder:
        return measure(args.folder, args.size or 96)
    with tempfile.TemporaryDirectory() as folder:
        write_photos(pathlib.Path(folder), args.images, args.height, args.width)
        measure(folder, args.size or 96)


if __name__ == "__main__":
    guard(main)
