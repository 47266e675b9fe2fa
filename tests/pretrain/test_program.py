"""The program in processes of its own: kills, signals, several processes, mistakes."""

import pathlib
import signal
import socket
import subprocess
import sys
import time

import compiling
import in_process
import jax
import numpy as np
import pytest

from rdc_jax.models.checkpoints import load_variables
from rdc_jax.pretrain.logs import read_metrics
from rdc_jax.runtime.workdir import claim

PROGRAM = pathlib.Path(__file__).with_name("program.py")
ROOT = PROGRAM.parents[2]


@pytest.fixture(scope="module")
def arguments(images_dir, tmp_path_factory):
    """What the program is given for a short run in some work directory."""
    cache_dir = tmp_path_factory.mktemp("cache")

    def arguments(workdir):
        flags = {
            "config": f"{ROOT}/configs/pretrain.py:test",
            "workdir": workdir,
            "config.source": "tiny",
            "config.data_dir": images_dir,
            "config.cache_dir": cache_dir,
            "config.image_size": 16,
            "config.stored_size": 16,
            "config.epochs": 4,
            "config.steps_per_epoch": 3,
            "config.log_every": 2,
            "config.checkpoint_every": 2,
            "config.ema": 0.9,
            "config.validation.way": 3,
            "config.validation.query": 4,
            "config.validation.episodes": 8,
        }
        return [f"--{name}={value}" for name, value in flags.items()]

    return arguments


@pytest.fixture(scope="module")
def start(arguments):
    """Start the program with some flags; what is left of it is killed at the end."""
    started = []

    def start(workdir, *extra, devices=1):
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments(workdir), *extra],
            env=compiling.environment(devices),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            process.communicate()


def _finish(process):
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return errors


def _wait_for(process, found):
    """Wait until something is on disk; not on the clock, for machines differ."""
    while not found():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.002)


def _lines(workdir):
    """What the run logged, without its speed."""
    lines = read_metrics(workdir)
    return [{k: v for k, v in x.items() if k != "images_per_second"} for x in lines]


def _assert_equal_weights(one, other, *, steps=12):
    first, second = (load_variables(path / "latest") for path in (one, other))
    assert first[1]["step"] == second[1]["step"] == steps
    jax.tree.map(np.testing.assert_array_equal, first[0], second[0])


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    """An uninterrupted run."""
    workdir = tmp_path_factory.mktemp("whole")
    _finish(start(workdir))
    return workdir


@pytest.mark.slow
def test_killed_runs_end_in_the_same_bits(start, tmp_path, whole):
    workdir = tmp_path / "killed"
    steps = workdir / "checkpoints"
    moments = {
        "before the first checkpoint": lambda: (workdir / "metrics.jsonl").exists(),
        "while a checkpoint is written": lambda: any(steps.glob("*tmp*")),
        "after a line was logged": lambda: len(read_metrics(workdir)) >= 5,
    }
    for found in moments.values():
        process = start(workdir)
        _wait_for(process, found)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert "going on from step" in _finish(start(workdir))
    _assert_equal_weights(workdir, whole)
    assert _lines(workdir) == _lines(whole)


@pytest.mark.slow
def test_a_killed_run_with_an_adversary_ends_in_the_same_bits(start, tmp_path):
    flags = [
        "--config.method=protonet+ft+ata(steps=2;step_size=500)",
        "--config.arch=tiny_resnet",
        *(f"--config.episode.{name}" for name in ("way=4", "shot=1", "query=3")),
    ]
    _finish(start(tmp_path / "whole", *flags))
    workdir = tmp_path / "killed"
    for lines in (1, 4):
        process = start(workdir, *flags)
        _wait_for(process, lambda count=lines: len(_logged(workdir)) >= count)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert "going on from step" in _finish(start(workdir, *flags))
    _assert_equal_weights(workdir, tmp_path / "whole")
    assert _lines(workdir) == _lines(tmp_path / "whole")
    assert all(line["moved"] > 0 for line in _lines(workdir) if "loss" in line)


def _logged(workdir):
    there = (workdir / "metrics.jsonl").exists()
    return read_metrics(workdir) if there else []


def test_sigterm_saves_and_tells_how_to_go_on(start, tmp_path, whole):
    workdir = tmp_path / "stopped"
    process = start(workdir, "--config.checkpoint_every=0")
    _wait_for(process, (workdir / "metrics.jsonl").exists)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "is saved: the same command goes on" in errors
    assert "Traceback" not in errors
    _finish(start(workdir, "--config.checkpoint_every=0"))
    _assert_equal_weights(workdir, whole)
    assert _lines(workdir) == _lines(whole)


@pytest.mark.slow
def test_two_processes_equal_one(start, tmp_path):
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    short = ["--config.epochs=1", "--config.checkpoint_every=0"]
    several = [f"--coordinator=localhost:{port}", "--num_processes=2"]
    both = [
        start(tmp_path / "two", *short, *several, f"--process_id={i}") for i in range(2)
    ]
    for process in both:
        _finish(process)
    _finish(start(tmp_path / "one", *short, devices=2))
    _assert_equal_weights(tmp_path / "one", tmp_path / "two", steps=3)
    assert _lines(tmp_path / "one") == _lines(tmp_path / "two")


def test_a_second_run_in_the_same_place_is_refused(arguments, tmp_path):
    with claim(tmp_path / "run"):
        done = in_process.run("run_pretrain.py", *arguments(tmp_path / "run"))
    assert done.code == 2
    assert done.errors.startswith("error: another run is using")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--config.epoch=3"], "no field 'epoch'. Did you mean \"epochs\""),
        (["--config.epochs=many"], "give a whole number, not 'many'"),
        (["--config.data_dir=/nowhere"], "/nowhere"),
        (["--workdir=/proc/run"], "cannot write to the workdir /proc/run"),
        (["--coordinator=localhost:1"], "--coordinator needs --num_processes"),
    ],
)
def test_mistakes_exit_with_one_line(arguments, tmp_path, flags, message):
    done = in_process.run("run_pretrain.py", *arguments(tmp_path / "run"), *flags)
    assert done.code == 2
    assert done.errors.startswith("error: ")
    assert message in done.errors
    assert done.errors.count("\n") == 1
