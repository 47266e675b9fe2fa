"""The two programs as processes of their own, to be stopped at any moment."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import numpy as np

from rdc_jax.models.checkpoints import load_variables
from rdc_jax.training.logs import read_metrics

TESTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_LONGEST = 240  # seconds of any run; none takes a tenth of it on a quiet machine
# Names of files that are not meant to outlive the process that writes them.
_SCRATCH = ("*.part", "*.tmp", "*tmp-*", "*orbax-checkpoint-tmp*", "*.damaged")


@dataclasses.dataclass(frozen=True)
class Program:
    """A command: the same at every start but for the work directory.

    Attributes:
      script: Stands in for run_*.py, with the tiny network.
      flags: Of the command line.
      compiled_dir: Where compiled programs are kept between processes.
    """

    script: pathlib.Path
    flags: dict[str, object]
    compiled_dir: str

    def start(self, workdir, **options):
        """Start it in a session of its own."""
        command = [sys.executable, str(self.script), f"--workdir={workdir}"]
        command += [f"--{name}={value}" for name, value in self.flags.items()]
        environment = {
            **os.environ,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
            "JAX_COMPILATION_CACHE_DIR": self.compiled_dir,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # Compiles faster.
            **options.pop("env", {}),
        }
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def finish(self, workdir, **options):
        """Run to the end; gives the exit code and what was written to stderr."""
        with _killed_at_last(self.start(workdir, **options)) as process:
            errors = _end_of(process)
        return process.returncode, errors

    def stopped(self, workdir, number, *, delay=0.0, found=None):
        """Send a signal once something is found, and some seconds later.

        Gives what was written to stderr, or None if the run was faster.
        """
        with _killed_at_last(self.start(workdir)) as process:
            _await(process, found or (workdir / ".lock").exists)
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            errors = _end_of(process)
        if process.returncode == 0:
            return None
        assert process.returncode in (-number, 128 + number), errors
        return errors

    def working_time(self, workdir):
        """Seconds from the lock to the end of a whole run."""
        with _killed_at_last(self.start(workdir)) as process:
            _await(process, (workdir / ".lock").exists)
            began = time.monotonic()
            errors = _end_of(process)
        assert process.returncode == 0, errors
        return time.monotonic() - began


@contextlib.contextmanager
def _killed_at_last(process):
    """Whatever stops the test, Ctrl-C included, leaves no program behind."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _await(process, found):
    while not found():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.002)


def _end_of(process):
    """Wait, and see that nothing of the process's session is left."""
    _, errors = process.communicate(timeout=_LONGEST)
    assert not session_members(process.pid), "processes outlive the program"
    return errors


def session_members(session):
    """Ids of the running processes of a session; Linux only, none elsewhere."""
    members = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            members.append(int(path.parent.name))
    return members


def scratch_files(workdir):
    """Files that a stopped run left and the last one did not remove."""
    return sorted(str(p) for pattern in _SCRATCH for p in workdir.rglob(pattern))


def evaluation_content(workdir):
    """Every file of an evaluation but locks: all are compared by their bytes."""
    return {
        str(path.relative_to(workdir)): path.read_bytes()
        for path in sorted(workdir.rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.name != ".lock"
    }


def pretraining_content(workdir):
    """The weights, latest and best, and the lines of the log without its speeds."""
    content = {}
    for which in ("latest", "best"):
        variables, metadata = load_variables(workdir / which)
        leaves = jax.tree_util.tree_leaves_with_path(variables)
        content[which, "metadata"] = metadata
        for path, leaf in leaves:
            content[which, jax.tree_util.keystr(path)] = np.asarray(leaf).tobytes()
    for number, line in enumerate(read_metrics(workdir)):
        del line["images_per_second" if "loss" in line else "epoch"]
        content["line", number] = line
    return content
