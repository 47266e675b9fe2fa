"""The program in processes of its own: kills, several processes, mistakes."""

import pathlib
import signal
import socket
import subprocess
import sys
import time

import compiling
import in_process
import pytest

from rdc_jax.runtime.workdir import claim

PROGRAM = pathlib.Path(__file__).with_name("program.py")
ROOT = PROGRAM.parents[2]
FILES = (
    *("ledger.jsonl", "results.json", "table.md"),
    *("predictions.parquet", "hardest.npz"),
)


@pytest.fixture(scope="module")
def arguments(flags):
    """What the program is given for a small run in some work directory."""
    config = [f"--config.{name}={value}" for name, value in flags.items()]
    config = [f"--config={ROOT}/configs/eval.py:test", *config]
    config += ["--config.predictions=true", "--config.distractor_queries=3"]
    config += ["--config.way=4"]  # One class is left for the distractors.
    return lambda workdir: [f"--workdir={workdir}", *config]


@pytest.fixture(scope="module")
def start(arguments):
    """Start the program with some flags; what is left of it is killed at the end."""
    started = []

    def start(workdir, *extra, devices=1):
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments(workdir), *extra],
            env=compiling.environment(devices),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finish(process):
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return output, errors


def content(workdir):
    return {name: (workdir / name).read_bytes() for name in FILES}


def lines(workdir):
    path = workdir / "ledger.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    """The work directory of an uninterrupted run."""
    workdir = tmp_path_factory.mktemp("whole")
    output, _ = finish(start(workdir))
    assert output.strip() == (workdir / "table.md").read_text().strip()
    return workdir


def test_killed_runs_end_in_the_same_bytes(start, whole, tmp_path):
    workdir = tmp_path / "killed"
    for least in (2, 22):  # the first episodes, those of the second stage
        process = start(workdir)
        while lines(workdir) < least:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    _, errors = finish(start(workdir))
    assert "of 40 tasks are on record" in errors
    assert content(workdir) == content(whole)


@pytest.mark.slow
def test_two_processes_equal_one(start, whole, tmp_path):
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    several = [f"--coordinator=localhost:{port}", "--num_processes=2"]
    both = [start(tmp_path / "two", *several, f"--process_id={i}") for i in range(2)]
    printed = [finish(process)[0] for process in both]
    assert content(tmp_path / "two") == content(whole)
    assert "Accuracy" in printed[0] and "Accuracy" not in printed[1]


def test_a_second_run_in_the_same_place_is_refused(arguments, tmp_path):
    with claim(tmp_path / "run"):
        done = in_process.run("run_eval.py", *arguments(tmp_path / "run"))
    assert done.code == 2
    assert done.errors.startswith("error: another run is using")


@pytest.mark.parametrize(
    ("flags_given", "message"),
    [
        (["--config.episode=3"], "no field 'episode'. Did you mean \"episodes\""),
        (["--config.rdc.kk=3"], "no field 'kk'"),
        (["--config.rdc.k=0"], "config.rdc.k must be an int >= 1, got 0"),
        (["--workdir="], "--workdir is missing"),
        (["--workdir=/proc/run"], "cannot write to the workdir /proc/run"),
    ],
)
def test_mistakes_exit_with_one_line(arguments, tmp_path, flags_given, message):
    done = in_process.run("run_eval.py", *arguments(tmp_path / "run"), *flags_given)
    assert done.code == 2
    assert done.errors.startswith("error: ")
    assert message in done.errors
    assert done.errors.count("\n") == 1
    assert not done.output
