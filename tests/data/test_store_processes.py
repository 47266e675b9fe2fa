"""Several processes at one stored array, and processes that are killed."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

_ROOT = pathlib.Path(__file__).parents[2]

_SLOW = """
import sys, time, numpy as np
from rdc_jax.data import store
folder, seconds = sys.argv[1], float(sys.argv[2])

def build(notes):
    with open(f"{folder}/builders", "a") as log:
        log.write("x")
    for i in range(10):
        yield np.full((100, 10), i)
        time.sleep(seconds)

print("ready", flush=True)
sys.stdin.readline()
stored = store.cached_array(f"{folder}/name", fields={}, build=build)
print(int(stored.array.sum()), flush=True)
"""


def _visible(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def start(tmp_path):
    """Starts processes that wait for a line before they open the array."""
    processes = []

    def one(seconds):
        process = subprocess.Popen(
            [sys.executable, "-c", _SLOW, str(tmp_path), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )
        processes.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield one
    for process in processes:
        process.kill()
        process.communicate()


def _go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_processes_at_once_build_one_array(tmp_path, start):
    pair = [start(0.05) for _ in range(2)]
    for process in pair:
        _go(process)
    sums = [process.communicate(timeout=60)[0] for process in pair]
    assert sums == ["45000\n", "45000\n"]
    assert (tmp_path / "builders").read_text() == "x"
    assert _visible(tmp_path) == [".name.lock", "builders", "name.json", "name.npy"]


def test_a_kill_in_the_middle_is_built_again_without_a_trace(tmp_path, start):
    process = start(60)
    _go(process)
    part = tmp_path / ".name.npy.part"
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size > 128):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert part.exists() and not list(tmp_path.glob("name.*"))
    again = start(0)
    _go(again)
    assert again.communicate(timeout=60)[0] == "45000\n"
    assert (tmp_path / "builders").read_text() == "xx"
    assert _visible(tmp_path) == [".name.lock", "builders", "name.json", "name.npy"]
